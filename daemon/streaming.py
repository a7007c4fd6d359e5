"""Sending answers: whole bodies, and streams whose headers wait until it is known that there is no early error."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from aiohttp import web

from ..core.errors import CorralError
from ..core.progress import Progress

NDJSON = "application/x-ndjson"
JSON = "application/json; charset=utf-8"


def body_response(body: bytes, status: int = 200, content_type: str = JSON) -> web.Response:
    """An answer in one piece. `content_type` may carry a charset."""
    return web.Response(body=body, status=status, headers={"Content-Type": content_type})


def json_response(value: object, status: int = 200) -> web.Response:
    """A JSON answer."""
    return body_response(msgspec.json.encode(value), status)


def error_response(error: CorralError, body: bytes | None = None) -> web.Response:
    """An error with its status; `body` is what a dialect makes of it, the native form where none is given."""
    response = body_response(body or msgspec.json.encode({"error": error.message}), error.status)
    if error.status == 503:
        response.headers["Retry-After"] = "1"
    return response


async def open_stream(request: web.Request, content_type: str) -> web.StreamResponse:
    """Start a chunked answer; from here on errors can only be its last line."""
    response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
    await response.prepare(request)
    return response


async def send_progress(request: web.Request, steps: AsyncIterator[Progress], stream: bool) -> web.StreamResponse:
    """Progress of a job: lines as they come, or only the last step. Errors before the first line are ordinary ones."""
    if not stream:
        last = Progress("success")
        async for step in steps:
            last = step
        return json_response(last)
    response: web.StreamResponse | None = None
    try:
        async for step in steps:
            if response is None:
                response = await open_stream(request, NDJSON)
            await response.write(msgspec.json.encode(step) + b"\n")
    except CorralError as error:
        if response is None:
            raise
        await response.write(msgspec.json.encode({"error": error.message}) + b"\n")
    if response is None:
        response = await open_stream(request, NDJSON)
    await response.write_eof()
    return response
