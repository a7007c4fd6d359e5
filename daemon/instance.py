"""One loaded model: its runner, who uses it, how long it stays. A small state machine that the scheduler drives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from enum import StrEnum

from ..backends.handle import EventStream, RunnerHandle
from ..core.durations import NEVER, format_expiry
from ..core.types import EmbedRequest, GenerateRequest, LoadOptions
from ..modelfile.model import Model


class State(StrEnum):
    """LOADING -> READY -> DRAINING -> GONE. A failed load goes to GONE at once; so does a runner that dies."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"
    GONE = "gone"


class Instance:
    """A model in a runner. `options` are those it was loaded with, `model` is the first that asked for its weights.

    `progress` is the loaded part of the weights, 0 to 1.
    """

    def __init__(self, model: Model, options: LoadOptions, keep_alive: float) -> None:
        self.model = model
        self.options = options
        self.keep_alive = keep_alive
        self.state = State.LOADING
        self.progress = 0.0
        self.num_leases = 0
        self.last_used = time.monotonic()
        self.released_at = time.time()
        self.load: asyncio.Task[RunnerHandle] | None = None
        self.retirement: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def handle(self) -> RunnerHandle | None:
        """The runner, once loaded."""
        if self.load is None or not self.load.done() or self.load.cancelled() or self.load.exception():
            return None
        return self.load.result()

    @property
    def expires_at(self) -> float:
        """When its time is up, in Unix seconds; NEVER where it stays."""
        return self.released_at + self.keep_alive

    @property
    def expires_at_text(self) -> str:
        """The same as RFC 3339."""
        return format_expiry(self.released_at, self.keep_alive)

    @property
    def is_usable(self) -> bool:
        """Whether a new request may join: loading, or loaded and alive."""
        if self.state is State.LOADING:
            return True
        return self.state is State.READY and self.handle is not None and self.handle.is_alive

    @property
    def num_parallel(self) -> int:
        """How many requests run at once; before the load is done, as many as were asked for."""
        handle = self.handle
        return handle.loaded.num_parallel if handle else self.options.num_parallel or 1

    def enter(self) -> None:
        """Count a request in."""
        self.num_leases += 1
        self.last_used = time.monotonic()
        self.idle.clear()
        self._cancel_timer()

    def leave(self, keep_alive: float | None, on_expiry: Callable[[Instance], None]) -> None:
        """Count a request out; the last one starts the clock."""
        self.num_leases -= 1
        self.last_used = time.monotonic()
        if keep_alive is not None:
            self.keep_alive = keep_alive
        self.released_at = time.time()
        if self.num_leases == 0:
            self.idle.set()
            self._start_timer(on_expiry)

    def _start_timer(self, on_expiry: Callable[[Instance], None]) -> None:
        self._cancel_timer()
        if self.keep_alive != NEVER and self.state is State.READY:
            self.timer = asyncio.get_running_loop().call_later(self.keep_alive, on_expiry, self)

    def _cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Lease:
    """The right of one request to a loaded model. `warnings` say what about the load was not as asked."""

    def __init__(self, instance: Instance, load_ns: int, warnings: list[str]) -> None:
        self._instance = instance
        self.load_ns = load_ns
        self.warnings = warnings

    def submit(self, request: GenerateRequest | EmbedRequest) -> EventStream:
        """Start a request in the runner. Errors: RunnerDied."""
        handle = self._instance.handle
        assert handle is not None, "a lease is given out after the load"
        return handle.submit(request)
