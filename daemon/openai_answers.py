"""Answers of /v1/responses that are still kept: reading and forgetting them by their id."""

from __future__ import annotations

from aiohttp import web

from .dialects.openai_encoder import print_error
from .dialects.responses_encoder import ID_PREFIX
from .services import SERVICES
from .streaming import body_response, json_response


async def show_answer(request: web.Request) -> web.Response:
    """A kept answer of /v1/responses."""
    shown = request.match_info["id"]
    answer = request.app[SERVICES].sessions.find(shown.removeprefix(ID_PREFIX))
    return body_response(answer) if answer else _unknown(shown)


async def delete_answer(request: web.Request) -> web.Response:
    """Forget a kept answer of /v1/responses."""
    shown = request.match_info["id"]
    if not request.app[SERVICES].sessions.forget(shown.removeprefix(ID_PREFIX)):
        return _unknown(shown)
    return json_response({"id": shown, "object": "response", "deleted": True})


def _unknown(shown: str) -> web.Response:
    return body_response(
        print_error(f"response {shown[:60]!r} is not known: it was not stored, or too long ago", 404), 404
    )
