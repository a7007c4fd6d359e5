"""The aiohttp application: every route in one table, dialects from theirs."""

from __future__ import annotations

from importlib import import_module

from aiohttp import web

from . import manage, openai_models, transfers
from .dialects import DIALECTS
from .dialects.endpoint import Endpoint
from .infer import Inference
from .middleware import Handler, StrangerCheck, add_cors, answer_errors
from .origins import OriginRules
from .services import SERVICES, Services

# Bodies are read whole for JSON endpoints; images make them large. Blobs are streamed and know no limit.
MAX_BODY_BYTES = 256 << 20

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", manage.root),
    ("GET", "/api/version", manage.version),
    ("GET", "/api/status", manage.status),
    ("GET", "/api/tags", manage.tags),
    ("GET", "/api/ps", manage.ps),
    ("POST", "/api/show", manage.show),
    ("POST", "/api/copy", manage.copy),
    ("DELETE", "/api/delete", manage.delete),
    ("POST", "/api/modelfile", manage.modelfile),
    ("HEAD", "/api/blobs/{digest}", transfers.head_blob),
    ("POST", "/api/blobs/{digest}", transfers.upload_blob),
    ("POST", "/api/blobs", transfers.link_blob),
    ("POST", "/api/create", transfers.create),
    ("POST", "/api/pull", transfers.pull),
    ("GET", "/v1/models", openai_models.list_models),
    ("GET", "/v1/models/{name:.+}", openai_models.show_model),
)


def build_app(services: Services) -> web.Application:
    """The application over the daemon's parts."""
    check = StrangerCheck(OriginRules(services.settings.origins), services.settings.host)
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[answer_errors, check.middleware()])
    app[SERVICES] = services
    app.on_response_prepare.append(add_cors)
    for method, path, handler in ROUTES:
        # aiohttp answers HEAD where a GET route is.
        app.router.add_route(method, path, handler) if method != "GET" else app.router.add_get(path, handler)
    for endpoint in _endpoints():
        app.router.add_route(endpoint.method, endpoint.path, Inference(endpoint).__call__)
    return app


def _endpoints() -> list[Endpoint]:
    endpoints: list[Endpoint] = []
    for row in DIALECTS.values():
        module, _, attribute = row.partition(":")
        endpoints.extend(getattr(import_module(module), attribute))
    return endpoints
