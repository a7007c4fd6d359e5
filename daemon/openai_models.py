"""OpenAI's list of models: what is installed, under ids that clients can send back; and what none of them can do."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from ..core.errors import CorralError, Unsupported
from ..core.names import request_name
from ..registry.manifests import StoredModel
from .dialects.openai_encoder import encode_error
from .services import SERVICES
from .streaming import error_response, json_response


async def list_models(request: web.Request) -> web.Response:
    """Installed models, newest first."""
    models = await asyncio.to_thread(request.app[SERVICES].store.list_models)
    return json_response({"object": "list", "data": [_row(model, model.name.short) for model in models]})


async def show_model(request: web.Request) -> web.Response:
    """One model, under the id that was asked for."""
    shown = request.match_info["name"]
    try:
        name = request_name(shown)
        stored = await asyncio.to_thread(request.app[SERVICES].store.get, name, shown)
    except CorralError as error:
        return error_response(error, encode_error(error))
    return json_response(_row(stored, shown))


async def refuse_audio(request: web.Request) -> web.Response:
    """Refuse to transcribe: no model takes audio yet."""
    # Unread, the rest of an upload would be taken for the next request.
    await request.release()
    error = Unsupported("this version of Corral has no engine for audio: transcribe elsewhere and send the text")
    return error_response(error, encode_error(error))


def _row(stored: StoredModel, shown: str) -> dict[str, Any]:
    created = stored.modified_ns // 1_000_000_000
    return {"id": shown, "object": "model", "created": created, "owned_by": stored.name.namespace}
