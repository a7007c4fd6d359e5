"""The one inference handler: every dialect's endpoints run through here, from body to last byte."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from functools import partial

import msgspec
from aiohttp import web

from ..backends.handle import EventStream
from ..core.errors import CorralError, Failure, InvalidRequest, ModelNotFound
from ..core.events import Done, Event, Failed, FinishReason, Timings
from ..core.names import request_name
from ..modelfile.model import Model
from .choices import choose_best, merge
from .dialects.bodies import parse_json
from .dialects.endpoint import AnyCall, Call, EmbedCall, Encoder, Endpoint, Stamp
from .instance import Lease
from .notices import note_warnings, wants_strictness
from .resolution import Resolved, resolve
from .services import SERVICES, Services
from .streaming import body_response, error_response, open_stream, with_pauses

# Headers of a stream leave no later than this, in seconds: gateways and clients give up on a silent server.
_FIRST_SILENCE = 0.8
_ID_BYTES = 12
Events = AsyncGenerator[tuple[int, Event], None]


class Inference:
    """Answers one endpoint. An instance is the aiohttp handler of that endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """One request. Errors that come before the first byte are answered in the dialect's own form."""
        try:
            return await self._infer(request)
        except CorralError as error:
            return error_response(error, self._endpoint.error(error), self._endpoint.status(error))

    async def _infer(self, request: web.Request) -> web.StreamResponse:
        started_ns = time.monotonic_ns()
        services = request.app[SERVICES]
        call = self._endpoint.read(parse_json(await request.read()), wants_strictness(request))
        note_warnings(request, call.warnings)
        call = services.sessions.resume(call)
        stamp = Stamp(secrets.token_hex(_ID_BYTES), time.time_ns)
        encoder = self._endpoint.encoder(call, stamp)
        model = await asyncio.to_thread(_find_model, services, call)
        resolved = resolve(call, model)
        if not resolved.requests:
            return await _load_only(services, call, model, resolved, encoder)

        def keep(events: list[Event]) -> None:
            services.sessions.keep(stamp.id, call, events, encoder.whole)

        async with aclosing(_run(services, call, model, resolved, started_ns)) as events:
            with services.metrics.running():
                if call.stream and not (isinstance(call, Call) and call.render_only):
                    return await _stream(request, encoder, events, keep)
                return await _answer_whole(call, encoder, events, keep)


async def _answer_whole(
    call: AnyCall, encoder: Encoder, events: Events, keep: Callable[[list[Event]], None]
) -> web.Response:
    gathered: dict[int, list[Event]] = {}
    async for choice, event in events:
        gathered.setdefault(choice, []).append(event)
    choices = [gathered[choice] for choice in sorted(gathered)]
    if isinstance(call, Call) and call.best_of > call.num_choices:
        choices = choose_best(choices, call.num_choices, len(call.prompts))
    keep(choices[0])
    return body_response(encoder.whole(choices), content_type=encoder.content_type)


async def _stream(
    request: web.Request, encoder: Encoder, events: Events, keep: Callable[[list[Event]], None]
) -> web.StreamResponse:
    silence = request.app[SERVICES].settings.heartbeat
    first: list[Event] = []
    async with aclosing(with_pauses(events, min(_FIRST_SILENCE, silence), silence)) as steps:
        early = await anext(steps)  # an error instead of it is answered with its status
        response = await open_stream(request, encoder.stream_content_type)

        async def send(step: tuple[int, Event] | None) -> None:
            choice, event = step or (0, None)
            if choice == 0 and event is not None:
                first.append(event)
            await response.write(encoder.ping() if event is None else encoder.chunk(event, choice))

        try:
            await send(early)
            async for step in steps:
                await send(step)
        except CorralError as error:
            await response.write(encoder.error(error))
        else:
            keep(first)
            await response.write(encoder.end())
        await response.write_eof()
        return response


async def _run(
    services: Services, call: AnyCall, model: Model, resolved: Resolved, started_ns: int
) -> AsyncGenerator[tuple[int, Event], None]:
    """Everything that a call's requests give, each event with the number of its request. Closing this cancels them."""
    async with services.scheduler.lease(model, resolved.load, call.keep_alive) as lease:
        count = partial(services.metrics.count_answer, model.name.short)
        async with AsyncExitStack() as cleanup:
            complete = []
            for request in resolved.requests:
                stream = lease.submit(request)
                # Also when the client hung up: aiohttp cancels the handler, and the sequences are dropped.
                cleanup.callback(stream.close)
                complete.append(_complete(stream, lease, resolved, started_ns, count))
            events = await cleanup.enter_async_context(aclosing(merge(complete)))
            async for step in events:
                yield step


async def _complete(
    stream: EventStream, lease: Lease, resolved: Resolved, started_ns: int, count: Callable[[Done], None]
) -> AsyncIterator[Event]:
    """The runner's events with the daemon's part of timings and warnings added; Failed is raised as an error.

    `count` is told of the end.
    """
    async for event in stream:
        if isinstance(event, Failed):
            raise Failure(event.code, event.message)
        if isinstance(event, Done):
            timings = msgspec.structs.replace(
                event.timings, load_ns=lease.load_ns, total_ns=time.monotonic_ns() - started_ns
            )
            warnings = (*resolved.warnings, *lease.warnings, *event.warnings)
            event = msgspec.structs.replace(event, timings=timings, warnings=warnings)
            count(event)
        yield event


async def _load_only(
    services: Services, call: AnyCall, model: Model, resolved: Resolved, encoder: Encoder
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
    return body_response(encoder.whole([[done]]), content_type=encoder.content_type)


def _find_model(services: Services, call: AnyCall) -> Model:
    shown = call.model or default_model(services)
    name = request_name(shown)
    stored = services.store.find(name)
    if stored is not None:
        return services.resolver.resolve(stored)
    if isinstance(call, Call) and not call.prompts and call.keep_alive == 0:
        # A deleted model may still be loaded; what /api/ps lists can be unloaded.
        loaded = services.scheduler.find_loaded(name)
        if loaded is not None:
            return loaded
    # Texts of Ollama's, which programs look for; they differ by endpoint (contract section 3).
    if isinstance(call, EmbedCall):
        raise ModelNotFound(f'model "{shown}" not found, try pulling it first')
    raise ModelNotFound(f"model '{shown}' not found")


def default_model(services: Services) -> str:
    """The model of a request that names none: the default, else the one that is loaded, else the only one there is."""
    if services.settings.default_model:
        return services.settings.default_model
    loaded = services.scheduler.loaded
    if len(loaded) == 1:
        return loaded[0].model.name.short
    installed = services.store.list_models()
    if len(installed) == 1:
        return installed[0].name.short
    raise InvalidRequest("model is required: name one, load just one, or set CORRAL_DEFAULT_MODEL")
