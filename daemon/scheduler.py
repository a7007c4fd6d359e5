"""The one owner of loaded models: loads on demand, shares runners, evicts idle ones, unloads when their time is up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from ..backends.handle import RunnerHandle
from ..core.errors import LoadFailed, QueueFull
from ..core.names import ModelName
from ..core.settings import Settings
from ..core.types import LoadOptions, LoadSpec
from ..modelfile.model import Model
from .instance import Instance, Lease, State
from .reload import ignored_options, reload_reason

log = logging.getLogger(__name__)

DEFAULT_MAX_LOADED = 3


class Scheduler:
    """Instances by the digest of their weights. Everything runs on the daemon's loop. `num_loads` only counts."""

    def __init__(self, settings: Settings, backend: str) -> None:
        self._settings = settings
        self._backend = backend
        self._instances: dict[str, Instance] = {}
        self._closing: set[asyncio.Task[Any]] = set()
        self._num_pending = 0
        self.num_loads = 0

    @property
    def loaded(self) -> list[Instance]:
        """Models that are loaded and alive, longest-lived first; also those that only finish what runs."""
        states = (State.READY, State.DRAINING)
        ready = [instance for instance in self._instances.values() if instance.state in states]
        alive = [instance for instance in ready if instance.handle is not None and instance.handle.is_alive]
        return sorted(alive, key=lambda instance: -instance.expires_at)

    @contextlib.asynccontextmanager
    async def lease(self, model: Model, want: LoadOptions, keep_alive: float | None) -> AsyncIterator[Lease]:
        """Hold a model loaded for one request, loading it first where needed.

        A load goes on when its caller leaves. Errors: QueueFull; LoadFailed and what else the engine refuses with.
        """
        started_ns = time.monotonic_ns()
        instance, handle, warnings = await self._enter(model, want, keep_alive)
        try:
            if want.num_ctx and want.num_ctx > handle.loaded.num_ctx:
                warnings.append(f"num_ctx {want.num_ctx} was cut to {handle.loaded.num_ctx}, the model's limit")
            yield Lease(instance, time.monotonic_ns() - started_ns, warnings)
        finally:
            instance.leave(keep_alive, self._expire)

    def find_loaded(self, name: ModelName) -> Model | None:
        """The loaded model of a name, which may have been deleted since."""
        return next((entry.model for entry in self.loaded if entry.model.name.key == name.key), None)

    async def unload(self, model: Model) -> None:
        """Unload a model once its running requests have ended. Returns when its memory is free."""
        instance = self._instances.get(model.weights)
        if instance is not None:
            await self._retire(instance)

    async def close(self) -> None:
        """End every runner at once."""
        for instance in list(self._instances.values()):
            self._stop(instance, force=True)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _enter(
        self, model: Model, want: LoadOptions, keep_alive: float | None
    ) -> tuple[Instance, RunnerHandle, list[str]]:
        """An instance that fits, loaded and counted in, and what about it was not as asked."""
        reason: str | None = None
        while True:
            instance = await self._admit(model, want, keep_alive)
            was_loaded = instance.handle is not None
            try:
                assert instance.load is not None
                handle = await asyncio.shield(instance.load)
                again = reload_reason(handle.loaded, instance.options, self._clip(model, want))
            except BaseException:
                instance.leave(keep_alive, self._expire)
                raise
            if again is None:
                warnings = ignored_options(instance.options, want) if was_loaded else []
                return instance, handle, warnings + ([f"the model was loaded again: {reason}"] if reason else [])
            reason = again
            instance.leave(None, self._expire)
            await self._retire(instance)

    async def _admit(self, model: Model, want: LoadOptions, keep_alive: float | None) -> Instance:
        """An instance of these weights, new or running, with the request counted in. Errors: QueueFull."""
        if self._num_pending > self._settings.max_queue:
            raise self._full(model, self._num_pending)
        self._num_pending += 1
        try:
            instance = await self._find_usable(model, want, keep_alive)
        finally:
            self._num_pending -= 1
        # Nothing is awaited between the two, so nobody can retire the instance in between.
        if instance.num_leases >= self._settings.max_queue + instance.num_parallel:
            raise self._full(model, instance.num_leases - instance.num_parallel)
        instance.enter()
        return instance

    async def _find_usable(self, model: Model, want: LoadOptions, keep_alive: float | None) -> Instance:
        while True:
            instance = self._instances.get(model.weights)
            if instance is None:
                if await self._make_room():
                    return self._start(model, want, keep_alive)
            elif instance.is_usable:
                return instance
            else:
                await self._retire(instance)

    def _start(self, model: Model, want: LoadOptions, keep_alive: float | None) -> Instance:
        clipped = self._clip(model, want)
        options = msgspec.structs.replace(
            clipped,
            num_ctx=clipped.num_ctx or self._settings.context_length or None,
            num_parallel=self._settings.num_parallel or None,
            kv_cache_type=self._settings.kv_cache_type,
            flash_attention=self._settings.flash_attention,
        )
        instance = Instance(model, options, self._settings.keep_alive if keep_alive is None else keep_alive)
        instance.load = asyncio.create_task(self._load(instance))
        # When everyone who waited has left, nobody else looks at how the load ended.
        instance.load.add_done_callback(lambda load: load.cancelled() or load.exception())
        self._instances[model.weights] = instance
        return instance

    async def _load(self, instance: Instance) -> RunnerHandle:
        model = instance.model
        spec = LoadSpec(self._backend, str(model.weights_path), instance.options)
        started = time.monotonic()

        limit = self._settings.load_timeout or None
        timeout = asyncio.timeout(limit)

        def on_progress(fraction: float) -> None:
            log.debug("loading %s: %d %%", model.name.short, fraction * 100)
            instance.progress = fraction
            if limit and not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time() + limit)

        try:
            async with timeout:
                handle = await RunnerHandle.start(spec, on_progress, self._settings.stall_timeout)
        except BaseException as error:
            self._forget(instance)
            if isinstance(error, TimeoutError):
                raise LoadFailed(
                    f"loading '{model.name.short}' made no progress for {limit:g} s: "
                    "give it longer with CORRAL_LOAD_TIMEOUT"
                ) from None
            raise
        instance.state = State.READY
        self.num_loads += 1
        log.info("loaded %s in %.1f s (runner %d)", model.name.short, time.monotonic() - started, handle.pid)
        if instance.num_leases == 0:
            # Whoever asked has left; the clock starts now.
            instance.enter()
            instance.leave(None, self._expire)
        return handle

    async def _make_room(self) -> bool:
        """Keep to the number of loaded models. True when there was room; else something was waited for: look again."""
        limit = self._settings.max_loaded_models or DEFAULT_MAX_LOADED
        if len(self._instances) < limit:
            return True
        idle = [instance for instance in self._instances.values() if not instance.num_leases]
        if idle:
            # One whose runner has died goes first, then the one that nobody has used for longest.
            await self._retire(min(idle, key=lambda instance: (instance.is_usable, instance.last_used)))
            return False
        waits = [asyncio.create_task(instance.idle.wait()) for instance in self._instances.values()]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return False

    async def _retire(self, instance: Instance) -> None:
        """Let an instance finish what runs, then end it. Goes on when the caller leaves; many may wait for it."""
        if instance.retirement is None:
            instance.retirement = asyncio.create_task(self._finish(instance))
        await asyncio.shield(instance.retirement)

    async def _finish(self, instance: Instance) -> None:
        if instance.state in (State.LOADING, State.READY):
            if instance.state is State.LOADING and instance.load is not None:
                await asyncio.wait([instance.load])
            if instance.state is State.READY:
                instance.state = State.DRAINING
        handle = instance.handle
        if handle is not None and handle.is_alive:
            await instance.idle.wait()
        self._stop(instance)
        await instance.gone.wait()

    def _expire(self, instance: Instance) -> None:
        if instance.state is State.READY and instance.num_leases == 0:
            log.info("unloading %s: its time is up", instance.model.name.short)
            self._stop(instance)

    def _stop(self, instance: Instance, force: bool = False) -> None:
        if instance.state is State.GONE:
            return
        instance.state = State.GONE
        handle = instance.handle
        task: asyncio.Task[Any]
        if handle is not None:
            task = asyncio.create_task(self._close(instance, handle, force))
        else:
            assert instance.load is not None, "an instance begins with its load"
            task = instance.load
            task.cancel()
            task.add_done_callback(lambda done: self._forget(instance))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, instance: Instance, handle: RunnerHandle, force: bool) -> None:
        await handle.close(force)
        self._forget(instance)

    def _forget(self, instance: Instance) -> None:
        instance.state = State.GONE
        if self._instances.get(instance.model.weights) is instance:
            del self._instances[instance.model.weights]
        instance.gone.set()

    def _clip(self, model: Model, want: LoadOptions) -> LoadOptions:
        """Load options with the window cut to what the model was trained for."""
        if want.num_ctx is None or not model.context_length:
            return want
        return msgspec.structs.replace(want, num_ctx=min(want.num_ctx, model.context_length))

    def _full(self, model: Model, num_waiting: int) -> QueueFull:
        return QueueFull(
            f"{num_waiting} requests wait for model '{model.name.short}' already: try again later, or raise "
            "CORRAL_MAX_QUEUE"
        )
