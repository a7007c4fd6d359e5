"""A daemon with the fake engine in a thread of its own, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from daemons import RunningDaemon, run_fake_daemon

_START_SECONDS = 60


@contextmanager
def serve_in_thread(folder: Path, prepare: Callable[[RunningDaemon], Awaitable[None]] | None = None) -> Iterator[str]:
    """The daemon's address. `prepare` runs in the thread before it is given out."""
    ready: list[str] = []
    started, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        try:
            async with run_fake_daemon(folder) as daemon:
                if prepare is not None:
                    await prepare(daemon)
                ready.append(daemon.url)
                started.set()
                await asyncio.to_thread(stop.wait)
        finally:
            started.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        started.wait(_START_SECONDS)
        yield ready[0]
    finally:
        stop.set()
        thread.join()
