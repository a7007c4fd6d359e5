"""The one inference handler: every dialect's endpoints run through here, from body to last byte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from aiohttp import web

from ..backends.handle import EventStream
from ..core.errors import CorralError, Failure, ModelNotFound
from ..core.events import Done, Event, Failed, FinishReason, Timings
from ..core.names import request_name
from ..modelfile.model import Model
from .dialects.endpoint import Call, Encoder, Endpoint
from .dialects.fields import parse_json
from .instance import Lease
from .resolution import Resolved, resolve
from .services import SERVICES, Services
from .streaming import body_response, error_response, open_stream


class Inference:
    """Answers one endpoint. An instance is the aiohttp handler of that endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """One request. Errors that come before the first byte are answered in the dialect's own form."""
        try:
            return await self._infer(request)
        except CorralError as error:
            return error_response(error, self._endpoint.error(error))

    async def _infer(self, request: web.Request) -> web.StreamResponse:
        started_ns = time.monotonic_ns()
        call = self._endpoint.parse(parse_json(await request.read()))
        encoder = self._endpoint.encoder(call)
        services = request.app[SERVICES]
        model = await asyncio.to_thread(_find_model, services, call)
        resolved = resolve(call, model)
        if resolved.request is None:
            return await _load_only(services, call, model, resolved, encoder)
        async with services.scheduler.lease(model, resolved.load, call.keep_alive) as lease:
            template = resolved.request
            stream = lease.generate(lambda request_id: msgspec.structs.replace(template, id=request_id))
            try:
                events = _complete(stream, lease, resolved, started_ns)
                return await _answer(request, call, encoder, events)
            finally:
                # Also when the client hung up: aiohttp cancels this handler, and the sequence is dropped.
                stream.close()


async def _answer(
    request: web.Request, call: Call, encoder: Encoder, events: AsyncIterator[Event]
) -> web.StreamResponse:
    if not call.stream or call.render_only:
        whole = [event async for event in events]
        return body_response(encoder.whole(whole), content_type=encoder.content_type)
    response: web.StreamResponse | None = None
    try:
        async for event in events:
            if response is None:
                response = await open_stream(request, encoder.stream_content_type)
            chunk = encoder.chunk(event)
            if chunk:
                await response.write(chunk)
    except CorralError as error:
        if response is None:
            raise
        await response.write(encoder.error(error))
    assert response is not None, "every stream has a terminal event"
    await response.write_eof()
    return response


async def _complete(stream: EventStream, lease: Lease, resolved: Resolved, started_ns: int) -> AsyncIterator[Event]:
    """The runner's events with the daemon's part of timings and warnings added; Failed is raised as an error."""
    async for event in stream:
        if isinstance(event, Failed):
            raise Failure(event.code, event.message)
        if isinstance(event, Done):
            timings = msgspec.structs.replace(
                event.timings, load_ns=lease.load_ns, total_ns=time.monotonic_ns() - started_ns
            )
            warnings = (*resolved.warnings, *lease.warnings, *event.warnings)
            event = msgspec.structs.replace(event, timings=timings, warnings=warnings)
        yield event


async def _load_only(
    services: Services, call: Call, model: Model, resolved: Resolved, encoder: Encoder
) -> web.StreamResponse:
    """A request without a prompt loads its model, or with keep_alive 0 unloads it."""
    started_ns = time.monotonic_ns()
    warnings = resolved.warnings
    if call.keep_alive == 0:
        await services.scheduler.unload(model)
        done = Done(FinishReason.UNLOAD, warnings=warnings)
    else:
        async with services.scheduler.lease(model, resolved.load, call.keep_alive) as lease:
            elapsed_ns = time.monotonic_ns() - started_ns
            timings = Timings(load_ns=lease.load_ns, total_ns=elapsed_ns)
            done = Done(FinishReason.LOAD, timings=timings, warnings=(*warnings, *lease.warnings))
    return body_response(encoder.whole([done]), content_type=encoder.content_type)


def _find_model(services: Services, call: Call) -> Model:
    name = request_name(call.model)
    stored = services.store.find(name)
    if stored is not None:
        return services.resolver.resolve(stored)
    if call.prompt is None and call.keep_alive == 0:
        # A deleted model may still be loaded; what /api/ps lists can be unloaded.
        loaded = services.scheduler.find_loaded(name)
        if loaded is not None:
            return loaded
    raise ModelNotFound(f"model '{call.model}' not found")
