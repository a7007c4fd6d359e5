"""Handlers that look at and change what is installed: tags, ps, show, copy, delete, version, modelfile."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from aiohttp import web

from .. import __version__
from ..core.durations import format_time
from ..core.errors import CorralError, InvalidName, ModelNotFound
from ..core.names import ModelName, request_name
from ..modelfile.describe import describe
from ..modelfile.model import Model
from ..modelfile.parser import parse_modelfile
from ..modelfile.request import to_request
from ..registry.manifests import StoredModel
from .bodies import CopyBody, DeleteBody, ShowBody
from .instance import Instance
from .notices import read_request
from .services import SERVICES, Services
from .streaming import json_response

log = logging.getLogger(__name__)


async def root(request: web.Request) -> web.Response:
    """The text by which clients know that something answers."""
    del request
    return web.Response(text="Ollama is running")


async def version(request: web.Request) -> web.Response:
    """Corral's version."""
    del request
    return json_response({"version": __version__})


async def status(request: web.Request) -> web.Response:
    """What Ollama's clients ask about its cloud: there is none here."""
    del request
    return json_response({"cloud": {"disabled": True, "source": "none"}})


async def tags(request: web.Request) -> web.Response:
    """Installed models, newest first."""
    services = request.app[SERVICES]
    return json_response({"models": await asyncio.to_thread(_list_tags, services)})


async def ps(request: web.Request) -> web.Response:
    """Loaded models, longest-lived first."""
    return json_response({"models": [_loaded_row(entry) for entry in request.app[SERVICES].scheduler.loaded]})


async def show(request: web.Request) -> web.Response:
    """One model in full."""
    services = request.app[SERVICES]
    body = await read_request(request, ShowBody)
    return json_response(await asyncio.to_thread(_describe, services, body.shown, body.verbose is True))


async def copy(request: web.Request) -> web.Response:
    """A second name for a model."""
    services = request.app[SERVICES]
    body = await read_request(request, CopyBody)
    source, destination = body.source or "", body.destination or ""
    source_name, destination_name = _copy_name("source", source), _copy_name("destination", destination)
    stored = await asyncio.to_thread(services.store.find, source_name)
    if stored is None:
        raise ModelNotFound(f'model "{source}" not found')
    await asyncio.to_thread(services.store.copy, stored, destination_name)
    return web.Response()


async def delete(request: web.Request) -> web.Response:
    """Remove a name, and the layers that no other model uses."""
    services = request.app[SERVICES]
    shown = (await read_request(request, DeleteBody)).shown
    try:
        name = request_name(shown)
    except InvalidName:
        raise InvalidName(f'name "{shown[:80]}" is invalid') from None
    await asyncio.to_thread(services.store.delete, name, shown)
    return web.Response()


async def modelfile(request: web.Request) -> web.Response:
    """Parse a Modelfile: what its FROM and ADAPTER lines name is for the client to find, since the files are there."""
    parsed = to_request(parse_modelfile(await request.read()))
    return json_response(
        {
            "from": [msgspec.to_builtins(reference) for reference in parsed.froms],
            "adapters": [msgspec.to_builtins(reference) for reference in parsed.adapters],
            "draft": msgspec.to_builtins(parsed.draft) if parsed.draft else None,
            "request": parsed.request,
            "warnings": list(parsed.warnings),
        }
    )


def find_parent(services: Services, model: Model) -> Model | None:
    """The installed model that this one says it was made from."""
    if not model.details.parent_model:
        return None
    try:
        stored = services.store.find(request_name(model.details.parent_model))
        return services.resolver.resolve(stored) if stored else None
    except CorralError:
        # A parent that is gone or damaged only makes the export say less.
        return None


def _describe(services: Services, shown: str, verbose: bool) -> dict[str, Any]:
    name = request_name(shown)
    stored = services.store.find(name)
    if stored is None:
        raise ModelNotFound(f"model '{_with_tag(shown, name)}' not found")
    model = services.resolver.resolve(stored)
    return describe(model, find_parent(services, model), verbose)


def _with_tag(shown: str, name: ModelName) -> str:
    return shown if shown.endswith(f":{name.tag}") else f"{shown}:{name.tag}"


def _list_tags(services: Services) -> list[dict[str, Any]]:
    rows = []
    for stored in services.store.list_models():
        try:
            rows.append(_tag_row(services.resolver.resolve(stored)))
        except CorralError as error:
            log.warning("%s is listed without details: %s", stored.name.short, error.message)
            rows.append(_bare_row(stored))
    return rows


def _tag_row(model: Model) -> dict[str, Any]:
    details = msgspec.to_builtins(model.details)
    lengths = {"context_length": model.gguf.context_length, "embedding_length": model.gguf.embedding_length}
    details |= {name: value for name, value in lengths.items() if value}
    return _bare_row(model.stored) | {"details": details, "capabilities": list(model.capabilities)}


def _bare_row(stored: StoredModel) -> dict[str, Any]:
    return {
        "name": stored.name.short,
        "model": stored.name.short,
        "modified_at": format_time(0, stored.modified_ns),
        "size": stored.manifest.size_bytes,
        "digest": stored.digest.removeprefix("sha256:"),
        "details": {},
    }


def _loaded_row(instance: Instance) -> dict[str, Any]:
    model, handle = instance.model, instance.handle
    assert handle is not None, "only loaded models are listed"
    return {
        "name": model.name.short,
        "model": model.name.short,
        "size": handle.loaded.size_bytes,
        "digest": model.stored.digest.removeprefix("sha256:"),
        "details": msgspec.to_builtins(model.details),
        "expires_at": instance.expires_at_text,
        "size_vram": handle.loaded.size_vram_bytes,
        "context_length": handle.loaded.num_ctx,
    }


def _copy_name(field: str, shown: str) -> ModelName:
    try:
        return request_name(shown)
    except InvalidName:
        raise InvalidName(f'{field} "{shown[:80]}" is invalid') from None
