"""The runner: a child process that holds one engine. `python -m corral.backends.runner FD` talks over that socket.

This thread reads frames, a few more prepare prompts, and one steps the engine and sends events.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor

from ..core.errors import CorralError
from ..core.events import Event, Failed
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
    to_runner_decoder,
)
from .outbox import Outbox
from .pipeline import Pipeline, Prepared
from .table import find_engine

_RECEIVE_BYTES = 1 << 18
_NUM_PREPARERS = 4
Work = Prepared | int | Ping


class Runner:
    """Joins a socket to an engine. The engine's thread is the only one that touches engine and generations."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._sending = threading.Lock()
        self._inbox: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._pipeline: Pipeline | None = None
        # Rendering and tokenizing a huge chat takes long; meanwhile others get their turn, and an Abort is heard.
        self._preparers = ThreadPoolExecutor(_NUM_PREPARERS, "prepare")
        self._preparing: set[int] = set()
        self._handing_over = threading.Lock()

    def serve(self) -> None:
        """Read frames until the daemon closes its end, then end at once, whatever the engine is doing."""
        splitter = FrameSplitter()
        while data := self._socket.recv(_RECEIVE_BYTES):
            for body in splitter.feed(data):
                self._dispatch(to_runner_decoder.decode(body))

    def _dispatch(self, frame: ToRunner) -> None:
        match frame:
            case Load(spec):
                self._load(spec)
            case Generate(request) | Embed(request):
                with self._handing_over:
                    self._preparing.add(request.id)
                future = self._preparers.submit(self._prepare, request)
                future.add_done_callback(lambda done: self._tell_fault(request.id, done))
            case Abort(request_id):
                self._abort(request_id)
            case Ping():
                self._inbox.put(frame)
            case Shutdown():
                os._exit(0)

    def _load(self, spec: LoadSpec) -> None:
        try:
            engine = find_engine(spec.backend)(spec, lambda fraction: self._send(LoadProgress(fraction)))
            self._pipeline = Pipeline(engine)
        except CorralError as error:
            self._send(LoadRefused(error.code, error.message))
            return
        info = engine.info
        self._send(Loaded(info.num_ctx, info.num_parallel, info.size_bytes, info.size_vram_bytes))
        threading.Thread(target=self._run, args=(self._pipeline,), name="engine", daemon=True).start()

    def _prepare(self, request: GenerateRequest | EmbedRequest) -> None:
        assert self._pipeline is not None, "the daemon sends requests after Loaded"
        try:
            prepared = self._pipeline.prepare(request)
        except CorralError as error:
            self._end_early(request.id, Failed(error.code, error.message))
            return
        with self._handing_over:
            # Not there any more: it was aborted meanwhile, and its end has been told.
            if request.id in self._preparing:
                self._preparing.discard(request.id)
                self._inbox.put(prepared)

    def _abort(self, request_id: int) -> None:
        if not self._end_early(request_id, Failed("client_gone", "cancelled before its first token")):
            self._inbox.put(request_id)

    def _end_early(self, request_id: int, failed: Failed) -> bool:
        """End a request that has not reached the engine. False when it has."""
        with self._handing_over:
            if request_id not in self._preparing:
                return False
            self._preparing.discard(request_id)
        self._send(Emit([(request_id, failed)]))
        return True

    def _tell_fault(self, request_id: int, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            traceback.print_exception(error)
            self._end_early(
                request_id, Failed("internal", "the prompt could not be prepared; the daemon's log says more")
            )

    def _run(self, pipeline: Pipeline) -> None:
        outbox = Outbox(self._send)
        try:
            while True:
                events = self._take_work(pipeline, wait=not pipeline.has_work)
                if pipeline.has_work:
                    events += pipeline.step()
                outbox.add(events)
        except Exception:  # noqa: BLE001 - the runner loop is one of the three places
            # A native fault leaves the engine in no known state: say so to everyone, then let the daemon start afresh.
            traceback.print_exc()
            failed = Failed("internal", "the engine failed; the model is loaded again at the next request")
            self._send(Faulted())
            outbox.add(pipeline.fail_all(failed))
            os._exit(1)

    def _take_work(self, pipeline: Pipeline, wait: bool) -> list[tuple[int, Event]]:
        events: list[tuple[int, Event]] = []
        while True:
            try:
                work = self._inbox.get(block=wait)
            except queue.Empty:
                return events
            wait = False
            if isinstance(work, Ping):
                self._send(Alive())
            elif isinstance(work, int):
                events += [(work, event) for event in pipeline.abort(work)]
            else:
                events += [(work.request.id, event) for event in pipeline.start(work)]

    def _send(self, frame: ToDaemon) -> None:
        try:
            with self._sending:
                self._socket.sendall(encode_frame(frame))
        except OSError:
            os._exit(0)


def main() -> None:
    """Run on the socket whose number is the first argument."""
    # Ctrl-C in a terminal goes to the whole group; only the daemon decides when a runner ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Runner(socket.socket(fileno=int(sys.argv[1]))).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
