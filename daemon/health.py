"""What clients and monitors ask of the daemon: GET /health and /metrics, TGI's /info and llama.cpp's /props."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from .. import __version__
from ..core.errors import ModelNotFound
from ..core.names import request_name
from ..modelfile.model import Model
from .infer import default_model
from .instance import Instance
from .metrics import CONTENT_TYPE
from .services import SERVICES, Services
from .streaming import json_response


async def health(request: web.Request) -> web.Response:
    """That the daemon answers."""
    del request
    return json_response({"status": "ok"})


async def info(request: web.Request) -> web.Response:
    """What TGI says of itself: the model that a request without a name gets, and the limits."""
    services = request.app[SERVICES]
    model = await asyncio.to_thread(_find_model, services, request.query.get("model", ""))
    window = _window(model, _find_instance(services, model))
    answer = {
        "model_id": model.name.short,
        "model_sha": model.stored.digest.removeprefix("sha256:"),
        "model_dtype": model.details.quantization_level,
        "model_pipeline_tag": "text-generation",
        "max_concurrent_requests": services.settings.max_queue,
        "max_input_tokens": window - 1 if window else None,
        "max_total_tokens": window,
        "router": "corral",
        "version": __version__,
    }
    return json_response(answer)


async def props(request: web.Request) -> web.Response:
    """What llama.cpp's server says of itself and its model."""
    services = request.app[SERVICES]
    model = await asyncio.to_thread(_find_model, services, request.query.get("model", ""))
    instance = _find_instance(services, model)
    answer: dict[str, Any] = {
        "default_generation_settings": {"n_ctx": _window(model, instance), "params": model.parameters},
        "total_slots": instance.num_parallel if instance else services.settings.num_parallel or 1,
        "model_alias": model.name.short,
        "chat_template": model.template or model.gguf.chat_template or "",
        "modalities": {"vision": model.projector is not None, "audio": False},
        "build_info": f"corral-{__version__}",
    }
    return json_response(answer)


async def metrics(request: web.Request) -> web.Response:
    """Counts for Prometheus."""
    body = request.app[SERVICES].metrics.print()
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def _find_model(services: Services, asked: str) -> Model:
    shown = asked or default_model(services)
    stored = services.store.find(request_name(shown))
    if stored is None:
        raise ModelNotFound(f"model '{shown}' not found")
    return services.resolver.resolve(stored)


def _find_instance(services: Services, model: Model) -> Instance | None:
    """The loaded copy of a model's weights, which it may share with others."""
    return next((entry for entry in services.scheduler.loaded if entry.model.weights == model.weights), None)


def _window(model: Model, instance: Instance | None) -> int | None:
    """The window of one sequence, in tokens: as loaded, else as trained."""
    handle = instance.handle if instance else None
    return handle.loaded.num_ctx if handle else model.context_length or None
