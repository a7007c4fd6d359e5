"""Calls written as JSON objects, one or several, also in lists: `{"name": …, "arguments": {…}}` and its relatives."""

from __future__ import annotations

from dataclasses import dataclass

from .calls import Calls
from .cursor import Cursor, Malformed, Steps
from .json_text import read_string, read_value

_NAME_KEYS = frozenset(("name", "tool_name"))
_ARGUMENT_KEYS = frozenset(("arguments", "parameters", "args"))
_OTHER_KEYS = frozenset(("type", "id", "index", "tool_call_id"))
_SEPARATORS = (",", ";")


@dataclass
class _Found:
    """What of a call was read so far."""

    name: str = ""
    arguments: str | None = None
    has_left: bool = False


def read_calls(cursor: Cursor, calls: Calls) -> Steps[None]:
    """Read a list of calls, or one call and those right behind it. Errors: Malformed at the first that is none."""
    yield from cursor.blanks()
    if (yield from cursor.literal("[")):
        yield from _read_list(cursor, calls)
        return
    yield from read_call(cursor, calls)
    while True:
        cursor.mark()
        yield from cursor.blanks()
        separator = yield from cursor.literal(*_SEPARATORS)
        yield from cursor.blanks()
        if (yield from cursor.peek()) != "{":
            if separator and not cursor.is_done:
                raise Malformed
            cursor.mark()
            return
        yield from read_call(cursor, calls)


def read_call(cursor: Cursor, calls: Calls) -> Steps[None]:
    """Read one call, an object. Errors: Malformed."""
    found = _Found()
    yield from _read_fields(cursor, calls, found, is_inner=False)
    if not found.has_left:
        yield calls.whole(found.name, found.arguments)


def _read_list(cursor: Cursor, calls: Calls) -> Steps[None]:
    """Read a list from behind its bracket. An empty one is no call."""
    while True:
        yield from cursor.blanks()
        yield from read_call(cursor, calls)
        yield from cursor.blanks()
        if not (yield from cursor.literal(",")):
            break
    # A list that the end of the answer cut off holds whole calls all the same.
    if not cursor.is_done:
        yield from cursor.expect("]")
    cursor.mark()


def _read_fields(cursor: Cursor, calls: Calls, found: _Found, is_inner: bool) -> Steps[None]:
    """Read an object's fields into `found`. A key that no call has ends the attempt early, so that text can flow on."""
    yield from cursor.expect("{")
    yield from cursor.blanks()
    while not (yield from cursor.literal("}")):
        key = yield from read_string(cursor)
        yield from cursor.blanks()
        yield from cursor.expect(":")
        yield from cursor.blanks()
        yield from _read_field(cursor, calls, found, key, is_inner)
        yield from cursor.blanks()
        if not (yield from cursor.literal(",")):
            yield from cursor.expect("}")
            return
        yield from cursor.blanks()


def _read_field(cursor: Cursor, calls: Calls, found: _Found, key: str, is_inner: bool) -> Steps[None]:
    if key == "function" and not is_inner and (yield from cursor.peek()) == "{":
        yield from _read_fields(cursor, calls, found, is_inner=True)
    elif key in _NAME_KEYS or (key == "function" and not is_inner):
        found.name = yield from read_string(cursor)
        calls.parameters(found.name)
    elif key in _ARGUMENT_KEYS:
        if calls.streams and found.name:
            found.has_left = True
            yield from calls.stream(found.name)
        else:
            found.arguments = yield from read_value(cursor)
    elif key in _OTHER_KEYS:
        yield from read_value(cursor)
    else:
        raise Malformed
