"""Sending answers: whole bodies, and streams whose headers wait until it is known that there is no early error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

import msgspec
from aiohttp import web

from ..core.errors import CorralError
from ..core.progress import Progress

NDJSON = "application/x-ndjson"
JSON = "application/json; charset=utf-8"
T = TypeVar("T")


def body_response(body: bytes, status: int = 200, content_type: str = JSON) -> web.Response:
    """An answer in one piece. `content_type` may carry a charset."""
    return web.Response(body=body, status=status, headers={"Content-Type": content_type})


def json_response(value: object, status: int = 200) -> web.Response:
    """A JSON answer."""
    return body_response(msgspec.json.encode(value), status)


def error_response(error: CorralError, body: bytes | None = None, status: int | None = None) -> web.Response:
    """An error with its status; `body` and `status` are what a dialect makes of it, the native ones where none is
    given."""
    response = body_response(body or msgspec.json.encode({"error": error.message}), status or error.status)
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


async def with_pauses(events: AsyncGenerator[T, None], first: float, then: float) -> AsyncGenerator[T | None, None]:
    """The events, and None whenever nothing came for `first` seconds at the beginning, for `then` seconds afterwards.

    0 seconds mean for ever. `events` is closed with this generator.
    """
    pending: asyncio.Future[T] | None = None
    timeout = first
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait({pending}, timeout=timeout or None)
            timeout = then
            if not done:
                yield None
                continue
            task, pending = pending, None
            try:
                event = task.result()
            except StopAsyncIteration:
                return
            yield event
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
        await events.aclose()
