"""The daemon's end of a runner: starts the process, sends requests, hands out events, notices its death."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Self

import msgspec

from ..core.errors import Failure, LoadFailed, RunnerDied
from ..core.events import Done, Event, Failed, merge_deltas
from ..core.settings import child_environment
from ..core.types import EmbedRequest, GenerateRequest, LoadSpec
from ..core.wire import (
    Abort,
    Alive,
    Embed,
    Emit,
    Faulted,
    FrameSplitter,
    Generate,
    Load,
    Loaded,
    LoadProgress,
    LoadRefused,
    Ping,
    Shutdown,
    ToDaemon,
    ToRunner,
    encode_frame,
    to_daemon_decoder,
)

log = logging.getLogger(__name__)

_STDERR_BYTES = 8192
_STOP_SECONDS = 5.0


class EventStream:
    """Events of one request. Deltas that nobody has read yet are merged, so a slow client costs no queue."""

    def __init__(self, on_close: Callable[[], None]) -> None:
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._on_close = on_close
        self._ended = False

    def put(self, event: Event) -> None:
        """Add an event; after the terminal one nothing counts."""
        if self._ended:
            return
        self._ended = isinstance(event, Done | Failed)
        merged = merge_deltas(self._events[-1], event) if self._events else None
        if merged is not None:
            self._events[-1] = merged
        else:
            self._events.append(event)
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, Done | Failed):
                    return
            self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Say that nobody reads any more: what still runs is cancelled."""
        if not self._ended:
            self._ended = True
            self._on_close()


class _Connection(asyncio.Protocol):
    """Bytes from the runner to frames."""

    def __init__(self, on_frame: Callable[[ToDaemon], None], on_end: Callable[[], None]) -> None:
        self._splitter = FrameSplitter()
        self._on_frame = on_frame
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        for body in self._splitter.feed(data):
            self._on_frame(to_daemon_decoder.decode(body))

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._on_end()


class RunnerHandle:
    """One runner process and what runs in it. Made by `start`; of no use once `is_alive` is False."""

    def __init__(
        self, process: asyncio.subprocess.Process, on_progress: Callable[[float], None], stall_timeout: float
    ) -> None:
        self._process = process
        self._on_progress = on_progress
        self._stall_timeout = stall_timeout
        self._watch_timer: asyncio.TimerHandle | None = None
        self._is_asked = False
        self._is_stalled = False
        self._transport: asyncio.Transport | None = None
        self._streams: dict[int, EventStream] = {}
        self._next_id = 0
        self._stderr = bytearray()
        self._loaded: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []
        self.is_alive = True

    @classmethod
    async def start(cls, spec: LoadSpec, on_progress: Callable[[float], None], stall_timeout: float = 0.0) -> Self:
        """Start a runner and load a model in it. `on_progress` gets the loaded part, 0 to 1.

        A runner that is silent for `stall_timeout` seconds while it has work is killed, unless that is 0. Cancelling
        this ends the process. Errors: LoadFailed and what else the engine refuses with.
        """
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "corral.backends.runner",
                str(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=child_environment(),
                # A group of its own: Ctrl-C in the daemon's terminal is the daemon's to handle.
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        handle = cls(process, on_progress, stall_timeout)
        try:
            await handle._connect(ours)
            handle._send(Load(spec))
            await handle._loaded
        except BaseException:
            await handle.close(force=True)
            raise
        return handle

    @property
    def loaded(self) -> Loaded:
        """What the engine says of the loaded model."""
        return self._loaded.result()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def submit(self, request: GenerateRequest | EmbedRequest) -> EventStream:
        """Start a request; it is given an id. The stream ends with exactly one terminal event.

        Errors: RunnerDied when the process has ended already, InvalidRequest for what no frame can carry.
        """
        if not self.is_alive or self._transport is None:
            raise RunnerDied(self._death())
        self._next_id += 1
        numbered = msgspec.structs.replace(request, id=self._next_id)
        self._send(Embed(numbered) if isinstance(numbered, EmbedRequest) else Generate(numbered))
        stream = self._streams[numbered.id] = EventStream(lambda: self._abort(numbered.id))
        if self._watch_timer is None:
            self._watch()
        return stream

    async def close(self, force: bool = False) -> None:
        """End the process: ask, then kill. With `force` kill at once."""
        if self._transport is not None and not force:
            with contextlib.suppress(OSError):
                self._send(Shutdown())
        self._stop_watching()
        if force:
            self._kill()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()
        if self._transport is not None:
            self._transport.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, ours: socket.socket) -> None:
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: _Connection(self._receive, self._end), sock=ours)
        self._tasks.append(asyncio.create_task(self._keep_stderr()))

    def _send(self, frame: ToRunner) -> None:
        if self._transport is not None:
            self._transport.write(encode_frame(frame))

    def _abort(self, request_id: int) -> None:
        # The stream stays until the runner has told how the request ended; nobody reads it any more.
        if request_id in self._streams and self.is_alive:
            self._send(Abort(request_id))

    def _watch(self) -> None:
        """Ask the engine's thread for a sign of life, again and again while it has work."""
        self._watch_timer = None
        if self._stall_timeout and self._streams and self.is_alive:
            self._is_asked = True
            self._send(Ping())
            self._watch_timer = asyncio.get_running_loop().call_later(self._stall_timeout, self._look)

    def _look(self) -> None:
        if not self._is_asked:
            self._watch()
            return
        log.error("runner %d gave no sign of life for %g s: killing it", self.pid, self._stall_timeout)
        self.is_alive = False
        self._is_stalled = True
        self._kill()

    def _stop_watching(self) -> None:
        if self._watch_timer is not None:
            self._watch_timer.cancel()
            self._watch_timer = None

    def _receive(self, frame: ToDaemon) -> None:
        match frame:
            case Emit(events):
                for request_id, event in events:
                    self._deliver(request_id, event)
            case Alive():
                self._is_asked = False
            case Faulted():
                self.is_alive = False
            case LoadProgress(fraction):
                self._on_progress(fraction)
            case Loaded():
                if not self._loaded.done():
                    self._loaded.set_result(frame)
            case LoadRefused(code, message):
                if not self._loaded.done():
                    self._loaded.set_exception(Failure(code, message))

    def _deliver(self, request_id: int, event: Event) -> None:
        stream = self._streams.get(request_id)
        if stream is None:
            return
        if isinstance(event, Done | Failed):
            del self._streams[request_id]
        if isinstance(event, Failed) and event.code == "client_gone":
            log.info("request %d of runner %d: %s", request_id, self.pid, event.message)
        stream.put(event)

    def _end(self) -> None:
        self.is_alive = False
        self._stop_watching()
        task = asyncio.ensure_future(self._fail_everyone())
        self._tasks.append(task)

    async def _fail_everyone(self) -> None:
        # The exit status and the last words come a moment after the end of the socket.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        message = self._death()
        if not self._loaded.done():
            self._loaded.set_exception(LoadFailed(f"the model could not be loaded: {message}"))
            # A load whose waiter was cancelled has nobody to look at this.
            self._loaded.exception()
        for stream in self._streams.values():
            stream.put(Failed("runner_died", f"{message}; ask again: the model is loaded anew"))
        self._streams.clear()

    async def _keep_stderr(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_STDERR_BYTES):
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES]
            log.debug("runner %d: %s", self.pid, data.decode("utf-8", "replace").rstrip())
        if await self._process.wait() != 0 and self._stderr:
            log.warning("runner %d ended; its last words:\n%s", self.pid, self._stderr.decode("utf-8", "replace"))

    def _death(self) -> str:
        if self._is_stalled:
            return (
                f"the model's process gave no sign of life for {self._stall_timeout:g} s and was ended; where its "
                "computations may take that long, raise CORRAL_STALL_TIMEOUT"
            )
        status = self._process.returncode
        if status is not None and status < 0:
            name = signal.Signals(-status).name if -status in {entry.value for entry in signal.Signals} else -status
            return f"the model's process was killed by {name}{_hint(-status)}"
        return f"the model's process ended with status {status}" if status else "the model's process ended"

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()


def _hint(number: int) -> str:
    return " (out of memory, if nobody killed it)" if number == signal.SIGKILL else ""
