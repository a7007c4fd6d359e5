"""The calls of one answer: which tools were offered, and how calls of them leave: whole, or as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .cursor import Cursor, Malformed, Steps
from .json_text import ValueScanner, parse_value, read_value, write_object
from .pieces import CallPiece
from .schema import tool_name, tool_parameters


class Calls:
    """Numbers the calls of an answer. `streams`: a grammar holds the text, so that arguments need no check."""

    def __init__(self, cursor: Cursor, tools: Sequence[Mapping[str, Any]], streams: bool) -> None:
        self.streams = streams
        self.is_partial = False  # a call has begun to leave and is not complete
        self._cursor = cursor
        self._parameters = {tool_name(tool): tool_parameters(tool) for tool in tools}
        self._num_calls = 0

    @property
    def num_calls(self) -> int:
        """Calls so far."""
        return self._num_calls

    def parameters(self, name: str) -> Mapping[str, Any]:
        """The schema of a tool's parameters. Errors: Malformed when no such tool was offered."""
        if name not in self._parameters:
            raise Malformed
        return self._parameters[name]

    def whole(self, name: str, arguments: Any) -> CallPiece:
        """A call in one piece. `arguments` are an object, None for none, or JSON text of one. Errors: Malformed."""
        self.parameters(name)
        value = parse_value(arguments) if isinstance(arguments, str) else arguments
        if isinstance(value, str):  # models write objects in strings, as OpenAI's API has them
            value = parse_value(value or "{}")
        if value is not None and not isinstance(value, dict):
            raise Malformed
        piece = CallPiece(self._num_calls, name, write_object(value or {}))
        self._num_calls += 1
        self._cursor.mark()
        return piece

    def stream(self, name: str) -> Steps[None]:
        """Read a call's arguments, an object, and let them go as they come. Errors: Malformed when they are cut off."""
        self.parameters(name)
        yield from self._cursor.blanks()
        if (yield from self._cursor.peek()) != "{":
            raise Malformed
        index = self._num_calls
        self._num_calls += 1
        self.is_partial = True
        yield CallPiece(index, name, "")
        scanner = ValueScanner()
        while not scanner.is_done:
            if not (yield from self._cursor.peek()):
                raise Malformed
            scanner.advance(self._cursor)
            arguments = scanner.take()
            if arguments:
                yield CallPiece(index, "", arguments)
            if scanner.is_broken:
                raise Malformed
        self.is_partial = False
        self._cursor.mark()

    def read_arguments(self, name: str) -> Steps[None]:
        """Read a call's arguments where they stand alone, after the name. Errors: Malformed."""
        self.parameters(name)
        if self.streams:
            yield from self.stream(name)
            return
        yield from self._cursor.blanks()
        if (yield from self._cursor.peek()) not in ("{", '"'):
            raise Malformed
        yield self.whole(name, (yield from read_value(self._cursor)))
