"""Events on their way out of a runner: merged as far as no reader would notice, since each wake-up costs speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ..core.events import Done, Event, Failed, merge_deltas
from ..core.wire import Emit

# Nobody reads faster than 30 changes a second. On a machine with few cores each wake-up of daemon and client takes time
# from the engine, whose threads wait for one another: sending each of 180 tokens a second by itself costs 5 % of speed.
FLUSH_SECONDS = 1 / 30


class Outbox:
    """Collects events of running requests. First and last events of a request leave at once."""

    def __init__(self, send: Callable[[Emit], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._clock = clock
        self._pending: dict[int, list[Event]] = {}
        self._started: set[int] = set()
        self._last_flush = clock()

    def add(self, events: Iterable[tuple[int, Event]]) -> None:
        """Take events in, and send what waits when it is time."""
        urgent = False
        for request_id, event in events:
            ends = isinstance(event, Done | Failed)
            urgent = urgent or ends or request_id not in self._started
            if ends:
                self._started.discard(request_id)
            else:
                self._started.add(request_id)
            self._append(request_id, event)
        if urgent or self._clock() - self._last_flush >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send all that waits."""
        if self._pending:
            self._send(
                Emit([(request_id, event) for request_id, waiting in self._pending.items() for event in waiting])
            )
            self._pending = {}
            self._last_flush = self._clock()

    def _append(self, request_id: int, event: Event) -> None:
        waiting = self._pending.setdefault(request_id, [])
        merged = merge_deltas(waiting[-1], event) if waiting else None
        if merged is not None:
            waiting[-1] = merged
        else:
            waiting.append(event)
