"""JSON in the midst of an answer: where a value ends, told while it arrives, and what it holds."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from .cursor import Cursor, Malformed, Steps

MAX_DEPTH = 64
_IN_STRING = re.compile(r'[^"\\]*')
_BETWEEN = re.compile(r'[^"{}()\[\]]*')
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_SCALAR = re.compile(r"[-+.\w]*")
_SURROGATES = re.compile("[\ud800-\udfff]")


class ValueScanner:
    """Finds the end of what brackets or quotes enclose, and drops blanks outside of strings. Brackets must match."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._in_string = False
        self._is_escaped = False
        self._parts: list[str] = []
        self.is_broken = False
        self.is_done = False

    def advance(self, cursor: Cursor) -> None:
        """Go on with what has come, up to the end of the value or, if `is_broken`, right behind what is wrong."""
        text, at = cursor.text, cursor.at
        while at < len(text) and not self.is_done and not self.is_broken:
            at = self._scan_string(text, at) if self._in_string else self._scan_outside(text, at)
        cursor.at = min(at, len(text))

    def take(self) -> str:
        """The text of the value since the last call."""
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def _scan_string(self, text: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            self._parts.append(text[at])
            return at + 1
        found = _IN_STRING.match(text, at)
        end = found.end() if found else at
        self._parts.append(text[at : end + 1])
        if end < len(text):
            self._is_escaped = text[end] == "\\"
            self._in_string = self._is_escaped
            self.is_done = not self._in_string and not self._open
        return end + 1

    def _scan_outside(self, text: str, at: int) -> int:
        found = _BETWEEN.match(text, at)
        end = found.end() if found else at
        self._parts.append("".join(text[at:end].split()))
        if end < len(text):
            self._take_sign(text[end])
        return end + 1

    def _take_sign(self, sign: str) -> None:
        self._parts.append(sign)
        if sign == '"':
            self._in_string = True
            return
        if sign in _CLOSERS:
            self._open.append(_CLOSERS[sign])
            self.is_broken = len(self._open) > MAX_DEPTH
            return
        self.is_broken = not self._open or self._open.pop() != sign
        self.is_done = not self._open


def read_value(cursor: Cursor) -> Steps[str]:
    """Read one JSON value; its text without needless blanks. Errors: Malformed, though not for all that is no JSON.

    What stands in round brackets is read as well, for calls that are written as in Python.
    """
    yield from cursor.blanks()
    if (yield from cursor.peek()) not in ('"', *_CLOSERS):
        scalar = yield from cursor.match(_SCALAR)
        if not scalar:
            raise Malformed
        return scalar
    scanner = ValueScanner()
    while not scanner.is_done:
        if not (yield from cursor.peek()):
            raise Malformed
        scanner.advance(cursor)
        if scanner.is_broken:
            raise Malformed
    return scanner.take()


def read_string(cursor: Cursor) -> Steps[str]:
    """Read a JSON string; what it holds. Errors: Malformed."""
    yield from cursor.blanks()
    if (yield from cursor.peek()) != '"':
        raise Malformed
    value = parse_value((yield from read_value(cursor)))
    if not isinstance(value, str):
        raise Malformed
    return value


def parse_value(text: str) -> Any:
    """The value of a JSON text. Line breaks in strings, which models write, are let through. Errors: Malformed."""
    try:
        return json.loads(text, strict=False, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Malformed from None


def write_object(value: dict[str, Any]) -> str:
    """Compact JSON, without halves of characters, which no client could read. Errors: Malformed for infinity."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise Malformed from None
    return _SURROGATES.sub("\ufffd", text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
