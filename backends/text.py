"""From token bytes to text that may be shown: whole characters only, and no part of a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokenizer:
    """Joins token bytes into characters. A character split over tokens comes out whole with its last token."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """The characters that are complete now."""
        return self._decoder.decode(data)


class StopMatcher:
    """Holds back text that may turn out to be the start of a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.hit: str | None = None

    def feed(self, text: str) -> str:
        """Text that is safe to send. Once `hit` is set the answer ends before that stop string."""
        if not self._stops:
            return text
        self._held += text
        found = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            at, self.hit = min(found)
            safe, self._held = self._held[:at], ""
            return safe
        keep = max(_overlap(self._held, stop) for stop in self._stops)
        safe = self._held[: len(self._held) - keep]
        self._held = self._held[len(safe) :]
        return safe

    def flush(self) -> str:
        """What was held back, when the answer ends otherwise."""
        held, self._held = self._held, ""
        return held

    @property
    def holds(self) -> bool:
        """Whether text is held back."""
        return bool(self._held)


def _overlap(text: str, stop: str) -> int:
    """How many of the last characters of `text` begin `stop`."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
