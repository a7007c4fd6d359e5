"""The text of an answer as it arrives: read from front to back, once, by generators that pause where it ends so far."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from typing import TypeAlias, TypeVar

from .pieces import Piece

_T = TypeVar("_T")
# A reader: it yields pieces as it finds them and None where it needs more text, and returns what it has read.
Steps: TypeAlias = Generator[Piece | None, None, _T]

_BLANKS = re.compile(r"\s*")


class Malformed(Exception):
    """What stands here is no call, whatever it looked like. It never leaves this folder."""


class Markers:
    """Texts to look for in a stream. None of them may be the beginning of another."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(texts))
        self._pattern = re.compile("|".join(map(re.escape, self.texts)) or r"(?!)")
        self._beginnings = frozenset(text[:size] for text in self.texts for size in range(1, len(text)))
        self._longest = max(map(len, self.texts), default=0)

    def find(self, text: str, start: int) -> re.Match[str] | None:
        """The first marker from `start` on."""
        return self._pattern.search(text, start)

    def num_held(self, text: str, start: int) -> int:
        """Characters at the end of `text` that a marker may begin with."""
        for size in range(min(self._longest - 1, len(text) - start), 0, -1):
            if text[-size:] in self._beginnings:
                return size
        return 0


class Cursor:
    """A place in a text that is still arriving. All readers of an answer share one."""

    def __init__(self) -> None:
        self.text = ""  # what was not yet read, and what the last `feed` found read
        self.at = 0
        self.ended = False
        self._mark = 0
        self._recorded: list[str] = []

    def feed(self, text: str) -> None:
        """Append text. What was read is let go, but for what was read since `mark`."""
        self._recorded.append(self.text[self._mark : self.at])
        self._mark = 0
        self.text, self.at = self.text[self.at :] + text, 0

    def mark(self) -> None:
        """Begin to record here."""
        self._recorded.clear()
        self._mark = self.at

    def recorded(self) -> str:
        """All that was read since the mark; the mark moves here."""
        text = "".join(self._recorded) + self.text[self._mark : self.at]
        self.mark()
        return text

    @property
    def is_done(self) -> bool:
        """Whether everything was read and nothing more will come."""
        return self.ended and self.at == len(self.text)

    def peek(self) -> Steps[str]:
        """The next character, or "" at the end."""
        while self.at == len(self.text) and not self.ended:
            yield None
        return self.text[self.at : self.at + 1]

    def match(self, pattern: re.Pattern[str]) -> Steps[str]:
        """Read as much as matches, such as blanks; the pattern is one character's class, repeated."""
        parts: list[str] = []
        while True:
            found = pattern.match(self.text, self.at)
            end = found.end() if found else self.at
            parts.append(self.text[self.at : end])
            self.at = end
            if end < len(self.text) or self.ended:
                return "".join(parts)
            yield None

    def blanks(self) -> Steps[str]:
        """Read blanks."""
        return (yield from self.match(_BLANKS))

    def literal(self, *texts: str) -> Steps[str]:
        """Read the longest of the texts that stands here, or nothing: "" then."""
        longest = max(map(len, texts))
        while (held := len(self.text) - self.at) < longest and not self.ended:
            here = self.text[self.at :]
            if not any(len(text) > held and text.startswith(here) for text in texts):
                break
            yield None
        found = max((text for text in texts if self.text.startswith(text, self.at)), key=len, default="")
        self.at += len(found)
        return found

    def expect(self, *texts: str) -> Steps[str]:
        """Read one of the texts. Errors: Malformed when something else stands here."""
        found = yield from self.literal(*texts)
        if not found:
            raise Malformed
        return found

    def closer(self, *texts: str) -> Steps[str]:
        """Read blanks and one of the texts if it stands behind them, or what has come of it where the answer ends."""
        yield from self.blanks()
        found = yield from self.literal(*texts)
        rest = self.text[self.at :] if self.ended and len(self.text) - self.at < max(map(len, texts)) else ""
        if rest and any(text.startswith(rest) for text in texts):
            self.at = len(self.text)
        return found

    def passage(self, markers: Markers) -> Steps[tuple[str, str]]:
        """Read text that surely holds no marker, and the marker behind it, or "" where none has come yet.

        Both are "" at the end only.
        """
        while True:
            found = markers.find(self.text, self.at)
            end = found.start() if found else len(self.text)
            if not found and not self.ended:
                end -= markers.num_held(self.text, self.at)
            passed, marker = self.text[self.at : end], found.group() if found else ""
            self.at = end + len(marker)
            if passed or marker or self.is_done:
                return passed, marker
            yield None

    def until(self, markers: Markers, limit: int = 0) -> Steps[tuple[str, str]]:
        """Read up to a marker and over it: the text before it, and the marker.

        Errors: Malformed when none comes, or none within `limit` characters, which are read then and no more.
        """
        parts: list[str] = []
        size = 0
        while True:
            text, marker = yield from self.passage(markers)
            parts.append(text)
            size += len(text)
            if limit and size > limit:
                self.at -= len(marker) + size - limit
                raise Malformed
            if marker:
                return "".join(parts), marker
            if self.is_done:
                raise Malformed
