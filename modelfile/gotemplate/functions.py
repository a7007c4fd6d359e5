"""Go's built-in functions and those that Ollama adds. Faults carry no place; the evaluator knows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote_plus

from . import printing
from .printf import sprintf
from .values import (
    NO_VALUE,
    Byte,
    Fault,
    NoValue,
    Struct,
    TypeNames,
    Value,
    basic_kind,
    decode_text,
    encode_text,
    is_list,
    is_nil,
    is_true,
    type_name,
)

_TYPESCRIPT = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "array": "any[]",
    "object": "Record<string, any>",
    "null": "null",
}
_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


@dataclass(frozen=True, slots=True)
class Function:
    """`takes_text` counts the leading arguments that must be strings; num_most None means any number."""

    call: Callable[..., Value]
    num_least: int
    num_most: int | None
    takes_text: int = 0


def compare_equal(first: Value, *others: Value) -> bool:
    """eq: whether the first equals one of the others. Errors: Fault for kinds that Go does not compare."""
    if not others:
        raise Fault("missing argument for comparison")
    return any(_is_equal(first, other) for other in others)


def _is_equal(first: Value, other: Value) -> bool:
    kinds = basic_kind(first), basic_kind(other)
    if kinds[0] != kinds[1] and set(kinds) != {"int", "uint"}:
        if _is_nothing(first) or _is_nothing(other):
            return False
        raise Fault(f"incompatible types for comparison: {type_name(first)} and {type_name(other)}")
    if kinds[0] is not None:
        return bool(first == other)
    if not (_is_nothing(first) or _is_nothing(other)) and _holder(first) != _holder(other):
        raise Fault(f"non-comparable types {type_name(first)} and {type_name(other)}")
    if is_nil(first) or is_nil(other):
        return is_nil(first) and is_nil(other)
    if not isinstance(other, Struct):
        raise Fault(f"non-comparable type {type_name(other)}")
    return first is other


def _is_nothing(value: Value) -> bool:
    return value is None or isinstance(value, NoValue)


def _holder(value: Value) -> str:
    return "struct" if isinstance(value, Struct) else "map" if isinstance(value, Mapping) else "slice"


def _compare_less(first: Value, second: Value) -> bool:
    kinds = basic_kind(first), basic_kind(second)
    if None in kinds:
        raise Fault("invalid type for comparison")
    if kinds[0] != kinds[1] and set(kinds) != {"int", "uint"}:
        raise Fault(f"incompatible types for comparison: {type_name(first)} and {type_name(second)}")
    if kinds[0] in ("bool", "complex"):
        raise Fault("invalid type for comparison")
    return bool(first < second)


def _index(item: Value, *indexes: Value) -> Value:
    if _is_nothing(item):
        raise Fault("index of untyped nil")
    for index in indexes:
        if _is_nothing(item):
            raise Fault("index of nil pointer")
        item = _indexed(item, index)
    return item


def _indexed(item: Value, index: Value) -> Value:
    if isinstance(item, Mapping):
        if not isinstance(index, str):
            raise Fault(f"value has type {type_name(index)}; should be string")
        return item.get(index)
    if not isinstance(item, str) and not is_list(item):
        raise Fault(f"can't index item of type {type_name(item)}")
    data = encode_text(item) if isinstance(item, str) else item
    position = _position(index, len(data) - 1)
    return Byte(data[position]) if isinstance(data, bytes) else data[position]


def _position(index: Value, most: int) -> int:
    if isinstance(index, bool) or not isinstance(index, int):
        raise Fault(f"cannot index slice/array with type {type_name(index)}")
    if not 0 <= index <= most:
        raise Fault(f"index out of range: {int(index)}")
    return int(index)


def _slice(item: Value, *indexes: Value) -> Value:
    if _is_nothing(item):
        raise Fault("slice of untyped nil")
    if not isinstance(item, str) and not is_list(item):
        raise Fault(f"can't slice item of type {type_name(item)}")
    if len(indexes) > 3 or (len(indexes) == 3 and isinstance(item, str)):
        raise Fault(f"too many slice indexes: {len(indexes)}")
    data = encode_text(item) if isinstance(item, str) else item
    bounds = [_position(index, len(data)) for index in indexes]
    if bounds != sorted(bounds):
        raise Fault(f"invalid slice index: {bounds}")
    start, end = (*bounds, *(0, len(data))[len(bounds) :])[:2]
    part = data[start:end]
    if isinstance(item, str):
        return decode_text(part)
    # What is cut out of a list prints as the list does.
    return part if type(part) is type(data) or isinstance(data, tuple) else type(data)(part)


def _length(item: Value) -> int:
    if isinstance(item, str):
        return len(item) if item.isascii() else len(encode_text(item))
    if not isinstance(item, Mapping) and not is_list(item):
        raise Fault("len of nil pointer" if item is None else f"len of type {type_name(item)}")
    return len(item)


def _join_lines(*values: Value) -> str:
    return " ".join(map(printing.show, values)) + "\n"


def _text_of(values: tuple[Value, ...]) -> str:
    return printing.join_values("<no value>" if _is_nothing(value) else value for value in values)


def _escape_html(*values: Value) -> str:
    return re.sub("[\0\"'&<>]", lambda found: _HTML[found.group()], _text_of(values))


def _escape_js(*values: Value) -> str:
    return "".join(map(_js_character, _text_of(values)))


def _js_character(character: str) -> str:
    if character in _JS:
        return _JS[character]
    if character < " " or (character > "\x7f" and not printing.is_printable(character)):
        return f"\\u{ord(character):04X}"
    return character


def _escape_query(*values: Value) -> str:
    return quote_plus(encode_text(_text_of(values)))


def _call(function: Value, *_arguments: Value) -> Value:
    raise Fault("call of nil" if _is_nothing(function) else f"non-function of type {type_name(function)}")


def _type_script(value: Value) -> str:
    """The TypeScript type of a tool's parameter."""
    if not isinstance(value, Struct) or not isinstance(value.values.get("Type"), TypeNames):
        return "any"
    if value.values["AnyOf"]:
        return " | ".join(map(_type_script, value.values["AnyOf"]))
    return " | ".join(_TYPESCRIPT.get(name, "any") for name in value.values["Type"]) or "any"


def _date(days_back: int) -> Callable[..., str]:
    return lambda *_ignored: (datetime.now() - timedelta(days=days_back)).strftime("%Y-%m-%d")


def _never_called(*_arguments: Value) -> Value:
    return NO_VALUE


# `and` and `or` are here for their names and counts: the evaluator stops at the argument that decides.
FUNCTIONS: dict[str, Function] = {
    "and": Function(_never_called, 1, None),
    "or": Function(_never_called, 1, None),
    "not": Function(lambda value: not is_true(value), 1, 1),
    "len": Function(_length, 1, 1),
    "index": Function(_index, 1, None),
    "slice": Function(_slice, 1, None),
    "print": Function(lambda *values: printing.join_values(values), 0, None),
    "printf": Function(lambda template, *values: sprintf(template, values), 1, None, takes_text=1),
    "println": Function(_join_lines, 0, None),
    "html": Function(_escape_html, 0, None),
    "js": Function(_escape_js, 0, None),
    "urlquery": Function(_escape_query, 0, None),
    "call": Function(_call, 1, None),
    "eq": Function(compare_equal, 1, None),
    "ne": Function(lambda first, second: not compare_equal(first, second), 2, 2),
    "lt": Function(_compare_less, 2, 2),
    "le": Function(lambda first, second: _compare_less(first, second) or compare_equal(first, second), 2, 2),
    "gt": Function(lambda first, second: not _compare_less(first, second) and first != second, 2, 2),
    "ge": Function(lambda first, second: not _compare_less(first, second), 2, 2),
    "json": Function(printing.to_json, 1, 1),
    "currentDate": Function(_date(0), 0, None, takes_text=1 << 20),
    "yesterdayDate": Function(_date(1), 0, None, takes_text=1 << 20),
    "toTypeScriptType": Function(_type_script, 1, 1),
}
