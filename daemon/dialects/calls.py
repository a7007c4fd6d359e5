"""Tool calls put together again from their pieces, for dialects that give them whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from ...core.events import Event, ToolCallDelta


class WholeCall(msgspec.Struct, frozen=True):
    """A call with its arguments as an object, and as the text that they came in."""

    index: int
    id: str
    name: str
    arguments: dict[str, Any]
    text: str


class CallGatherer:
    """Takes pieces of calls in the order in which they come; a call is whole when something else follows it."""

    def __init__(self) -> None:
        self._first: ToolCallDelta | None = None
        self._texts: list[str] = []

    @classmethod
    def gather(cls, events: Iterable[Event]) -> list[WholeCall]:
        """All calls among the events of an answer."""
        gatherer = cls()
        calls = [call for event in events if isinstance(event, ToolCallDelta) for call in gatherer.add(event)]
        return calls + gatherer.finish()

    def add(self, delta: ToolCallDelta) -> list[WholeCall]:
        """Take a piece; the call before it, where this one begins another."""
        before: list[WholeCall] = []
        if self._first is None or self._first.index != delta.index:
            before = self.finish()
            self._first = delta
        self._texts.append(delta.arguments)
        return before

    def finish(self) -> list[WholeCall]:
        """The call that was last, if there is one; its arguments are empty where their text was cut short."""
        if self._first is None:
            return []
        first, text = self._first, "".join(self._texts)
        self._first, self._texts = None, []
        try:
            arguments = json.loads(text or "{}")
        except ValueError:
            arguments = {}
        return [WholeCall(first.index, first.id, first.name, arguments if isinstance(arguments, dict) else {}, text)]
