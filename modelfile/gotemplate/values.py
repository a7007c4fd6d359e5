"""Go's values in Python: JSON values stand for interface{}, and what else a template can meet has a class here.

None is a nil interface; NO_VALUE is Go's zero reflect.Value, which a pipeline makes of it and which prints
`<no value>`. Text is str; bytes that a slice cut out of a character are lone surrogates until the output is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ESCAPED_BYTES = re.compile("[\udc80-\udcff]")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")

Value = Any


class Fault(Exception):
    """What a value or function refuses; the evaluator adds the place."""


class NoValue:
    """The class of NO_VALUE."""


NO_VALUE = NoValue()


class Byte(int):
    """A uint8: what indexing a text gives. Go tells it from int."""


class NilSlice(tuple[Value, ...]):
    """A list that was never made: as an empty one, but equal to nil."""

    def __new__(cls) -> NilSlice:
        return super().__new__(cls, ())


class JSONList(list[Value]):
    """A list that prints as JSON."""


class NilJSONList(NilSlice):
    """A list that was never made and prints as JSON, that is `null`."""


class JSONMap(dict[str, Value]):
    """A map that prints as JSON."""


class TypeNames(list[str]):
    """The type of a tool's parameter: prints as the name when there is one only."""

    def __str__(self) -> str:
        return self[0] if len(self) == 1 else f"[{' '.join(self)}]" if self else ""


@dataclass(frozen=True, slots=True)
class Shape:
    """A Go struct's type: its name, and the JSON name of each field in order; `optional` ones are left out when empty.

    `prints_json` is for types whose String method gives JSON.
    """

    name: str
    fields: Mapping[str, str]
    optional: frozenset[str] = frozenset()
    prints_json: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    shape: Shape
    values: Mapping[str, Value]


def is_true(value: Value) -> bool:
    """Go's truth: empty and zero are false, a struct is true."""
    if value is None or isinstance(value, NoValue):
        return False
    return True if isinstance(value, Struct) else bool(value)


def type_name(value: Value) -> str:
    """The type as Go's %T tells it."""
    if value is None or isinstance(value, NoValue):
        return "<nil>"
    if isinstance(value, Struct):
        return value.shape.name
    names = (
        (bool, "bool"),
        (Byte, "uint8"),
        (int, "int"),
        (float, "float64"),
        (complex, "complex128"),
        (str, "string"),
        (bytes, "[]uint8"),
        (TypeNames, "api.PropertyType"),
        (Mapping, "map[string]interface {}"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "[]interface {}")


def basic_kind(value: Value) -> str | None:
    """The kind by which Go compares: bool, uint, int, float, complex or string; None for all else."""
    kinds = ((bool, "bool"), (Byte, "uint"), (int, "int"), (float, "float"), (complex, "complex"), (str, "string"))
    return next((name for kind, name in kinds if isinstance(value, kind)), None)


def is_nil(value: Value) -> bool:
    """Whether a value equals nil."""
    return value is None or isinstance(value, NoValue | NilSlice)


def is_list(value: Value) -> bool:
    """Whether a value is a slice; `bytes` is one of uint8."""
    return isinstance(value, list | tuple | bytes)


def find_field(receiver: Value, name: str) -> Value:
    """`.name` of a value. A key that a map lacks is nil. Errors: Fault where Go has no such field."""
    if isinstance(receiver, NoValue):
        return NO_VALUE
    if receiver is None:
        raise Fault(f"nil pointer evaluating interface {{}}.{name}")
    if isinstance(receiver, Mapping):
        return receiver.get(name)
    if isinstance(receiver, Struct) and name in receiver.values:
        return receiver.values[name]
    raise Fault(f"can't evaluate field {name} in type {type_name(receiver)}")


def encode_text(text: str) -> bytes:
    """UTF-8, in which escaped bytes are themselves again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _LONE_SURROGATES.sub("\ufffd", text).encode("utf-8")


def decode_text(data: bytes) -> str:
    """The reverse of encode_text."""
    return data.decode("utf-8", "surrogateescape")


def clean_text(text: str) -> str:
    """Text that UTF-8 can hold: bytes whose character was cut are joined again or replaced."""
    if not _LONE_SURROGATES.search(text):
        return text
    if _ESCAPED_BYTES.search(text):
        text = decode_text(encode_text(text))
    return _LONE_SURROGATES.sub("\ufffd", text)
