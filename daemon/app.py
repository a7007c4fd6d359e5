"""The aiohttp application: every route in one table, dialects from theirs."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import msgspec
from aiohttp import web

from . import bodies, health, manage, openai_answers, openai_models, openapi, transfers
from .dialects import DIALECTS
from .dialects.endpoint import Endpoint
from .infer import Inference
from .middleware import Handler, StrangerCheck, add_cors, answer_errors, count_requests
from .notices import add_warnings
from .openapi import Operation
from .origins import OriginRules
from .services import SERVICES, Services

# Bodies are read whole for JSON endpoints; images make them large. Blobs are streamed and know no limit.
MAX_BODY_BYTES = 256 << 20


class Route(NamedTuple):
    """A method and path with its handler, and the type of its body where it takes JSON."""

    method: str
    path: str
    handler: Handler
    body: type[msgspec.Struct] | None = None


ROUTES: tuple[Route, ...] = (
    Route("GET", "/", manage.root),
    Route("GET", "/api/version", manage.version),
    Route("GET", "/api/status", manage.status),
    Route("GET", "/api/tags", manage.tags),
    Route("GET", "/api/ps", manage.ps),
    Route("POST", "/api/show", manage.show, bodies.ShowBody),
    Route("POST", "/api/copy", manage.copy, bodies.CopyBody),
    Route("DELETE", "/api/delete", manage.delete, bodies.DeleteBody),
    Route("POST", "/api/modelfile", manage.modelfile),
    Route("HEAD", "/api/blobs/{digest}", transfers.head_blob),
    Route("POST", "/api/blobs/{digest}", transfers.upload_blob),
    Route("POST", "/api/blobs", transfers.link_blob, bodies.LinkBody),
    Route("POST", "/api/create", transfers.create, bodies.CreateBody),
    Route("POST", "/api/pull", transfers.pull, bodies.PullBody),
    Route("GET", "/v1/models", openai_models.list_models),
    Route("GET", "/v1/models/{name:.+}", openai_models.show_model),
    Route("POST", "/v1/audio/transcriptions", openai_models.refuse_audio),
    Route("GET", "/v1/responses/{id}", openai_answers.show_answer),
    Route("DELETE", "/v1/responses/{id}", openai_answers.delete_answer),
    Route("GET", "/openapi.json", openapi.serve_page),
    Route("GET", "/health", health.health),
    Route("GET", "/info", health.info),
    Route("GET", "/props", health.props),
    Route("GET", "/metrics", health.metrics),
)


def build_app(services: Services) -> web.Application:
    """The application over the daemon's parts."""
    check = StrangerCheck(OriginRules(services.settings.origins), services.settings.host)
    app = web.Application(
        client_max_size=MAX_BODY_BYTES, middlewares=[count_requests, answer_errors, check.middleware()]
    )
    app[SERVICES] = services
    app.on_response_prepare.append(add_cors)
    app.on_response_prepare.append(add_warnings)
    for method, path, handler, _ in ROUTES:
        # aiohttp answers HEAD where a GET route is.
        app.router.add_route(method, path, handler) if method != "GET" else app.router.add_get(path, handler)
    for _, endpoint in _endpoints():
        app.router.add_route(endpoint.method, endpoint.path, Inference(endpoint).__call__)
    return app


def list_operations() -> list[Operation]:
    """Everything that the application answers, for its OpenAPI page."""
    plain = [Operation(route.method, route.path, "manage", _summary(route.handler), route.body) for route in ROUTES]
    return plain + [
        Operation(endpoint.method, endpoint.path, dialect, endpoint.summary, endpoint.body)
        for dialect, endpoint in _endpoints()
    ]


def _summary(handler: Handler) -> str:
    return (handler.__doc__ or "").splitlines()[0].rstrip(".")


def _endpoints() -> list[tuple[str, Endpoint]]:
    endpoints: list[tuple[str, Endpoint]] = []
    for dialect, row in DIALECTS.items():
        module, _, attribute = row.partition(":")
        endpoints += [(dialect, endpoint) for endpoint in getattr(import_module(module), attribute)]
    return endpoints
