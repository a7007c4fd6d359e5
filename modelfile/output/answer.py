"""The parser of one answer: thinking first, then text and calls, in pieces that leave as soon as they are certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .call_format import CallFormat, Reader
from .calls import Calls
from .cursor import Cursor, Malformed, Markers, Steps
from .harmony import HARMONY, read_answer
from .pieces import Piece, TextPiece
from .thinking import ThinkingTags, read_thinking


class AnswerParser:
    """Feeds a reader's generator. Behind OutputParser."""

    def __init__(
        self,
        thinking: ThinkingTags | None,
        calls: CallFormat | None,
        tools: Sequence[Mapping[str, Any]],
        *,
        in_thinking: bool,
        streams: bool,
    ) -> None:
        self._cursor = Cursor()
        offered = Calls(self._cursor, tools, streams)
        if calls is HARMONY:
            self._steps = read_answer(self._cursor, offered, in_thinking, bool(tools))
        else:
            reader = _ContentReader(self._cursor, offered, calls, bool(tools))
            self._steps = _read_all(self._cursor, reader, thinking, in_thinking)

    def feed(self, text: str) -> list[Piece]:
        """Pieces that the text makes certain."""
        self._cursor.feed(text)
        return self._advance()

    def finish(self) -> list[Piece]:
        """Pieces of all that was held back. Nothing may be fed afterwards."""
        self._cursor.ended = True
        return self._advance()

    def _advance(self) -> list[Piece]:
        """Pieces up to where more text is needed; neighbouring texts become one."""
        pieces: list[Piece] = []
        texts: list[str] = []
        for piece in self._steps:
            if isinstance(piece, TextPiece):
                texts.append(piece.text)
                continue
            if texts:
                pieces.append(TextPiece("".join(texts)))
                texts.clear()
            if piece is None:
                return pieces
            pieces.append(piece)
        return [*pieces, TextPiece("".join(texts))] if texts else pieces


def _read_all(cursor: Cursor, reader: _ContentReader, thinking: ThinkingTags | None, in_thinking: bool) -> Steps[None]:
    blanks = ""
    if thinking is not None:
        blanks = yield from read_thinking(cursor, thinking, in_thinking)
    yield from reader.read(blanks)


class _ContentReader:
    """What comes after the thinking: text, with calls in it."""

    def __init__(self, cursor: Cursor, calls: Calls, call_format: CallFormat | None, has_tools: bool) -> None:
        self._cursor = cursor
        self._calls = calls
        self._begin = call_format.begin if call_format and has_tools else None
        self._head = call_format.head if call_format else ""
        self._read_call = call_format.read if call_format else None
        dropped = call_format.dropped if call_format else ()
        self._dropped = frozenset(dropped)
        self._markers = Markers((*(call_format.markers if call_format and has_tools else ()), *dropped))

    def read(self, blanks: str) -> Steps[None]:
        """Read to the end. `blanks` were read before."""
        cursor = self._cursor
        blanks += yield from cursor.blanks()
        if self._begin is not None:
            cursor.mark()
            yield from self._attempt(self._begin, "", blanks)
            blanks = ""
        elif self._head:
            yield from cursor.literal(self._head)
        while not cursor.is_done:
            text, marker = yield from cursor.passage(self._markers)
            if text:
                yield TextPiece(blanks + text)
                blanks = ""
            if marker in self._dropped:
                blanks = ""
                yield from cursor.blanks()
            elif marker and self._read_call is not None:
                yield from self._attempt(self._read_call, marker, blanks)
                blanks = ""
        if blanks:
            yield TextPiece(blanks)

    def _attempt(self, read: Reader, marker: str, blanks: str) -> Steps[None]:
        """Read calls and the blanks behind them; what turns out to be none is text, with what stood before it."""
        cursor, calls = self._cursor, self._calls
        num_calls = calls.num_calls
        cursor.mark()
        try:
            yield from read(cursor, calls, marker)
        except Malformed:
            text = cursor.recorded()
            is_new = calls.num_calls > num_calls
            if not is_new:
                text = blanks + marker + text
            if text and not (calls.streams and is_new):
                yield TextPiece(text)
            calls.is_partial = False
            return
        if calls.num_calls > num_calls:
            yield from cursor.blanks()
