"""How values become text: Go's %v, its quoted strings, numbers and JSON."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from .values import (
    Byte,
    JSONList,
    JSONMap,
    NilJSONList,
    NilSlice,
    NoValue,
    Struct,
    TypeNames,
    Value,
    clean_text,
    decode_text,
    is_list,
)

_JSON_ESCAPES = re.compile("[<>&\u2028\u2029]")
_MAX_PLAIN_EXPONENT = 6
# Noncharacters that prompts use as marks around what users wrote: quoting must not take them away.
MARKS = ("\ufdd0", "\ufdd1")


def show_action(value: Value) -> str:
    """What `{{ value }}` prints."""
    return "<no value>" if isinstance(value, NoValue) else show(value)


def show(value: Value) -> str:
    """Go's %v."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, NoValue):
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_float(value)
    if isinstance(value, complex):
        return show_complex(value)
    text = method_text(value)
    if text is not None:
        return text
    if isinstance(value, Struct):
        return f"{{{' '.join(map(show, value.values.values()))}}}"
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{show(value[key])}' for key in sorted(value))}]"
    if is_list(value):
        return f"[{' '.join(map(show, value))}]"
    return str(int(value))


def method_text(value: Value) -> str | None:
    """What the String method of a value gives; None for one that has none."""
    if isinstance(value, TypeNames):
        return str(value)
    if isinstance(value, JSONList | NilJSONList | JSONMap) or (isinstance(value, Struct) and value.shape.prints_json):
        return to_json(value)
    return None


def join_values(values: Iterable[Value]) -> str:
    """Go's Sprint: a blank between two values when neither is a string."""
    pieces: list[str] = []
    before_is_text = True
    for value in values:
        is_text = isinstance(value, str)
        pieces.append(show(value) if is_text or before_is_text else f" {show(value)}")
        before_is_text = is_text
    return "".join(pieces)


def show_float(value: float) -> str:
    """Shortest %g, as Go's %v prints floats: an exponent from 1e6 on and below 1e-4."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value))
    exponent = number.adjusted() if number else 0
    return exponent_float(value) if exponent < -4 or exponent >= _MAX_PLAIN_EXPONENT else plain_float(value)


def exponent_float(value: float) -> str:
    """Shortest %e, at least two digits in the exponent."""
    sign, digits, _ = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent = Decimal(repr(value)).adjusted() if value else 0
    mantissa = text[0] + (f".{text[1:]}" if text[1:] else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def plain_float(value: float) -> str:
    """Shortest %f."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_complex(value: complex) -> str:
    """As (1+2i)."""
    imaginary = show_float(value.imag)
    return f"({show_float(value.real)}{'' if imaginary[0] in '+-' else '+'}{imaginary}i)"


def quote(text: str, *, ascii_only: bool = False) -> str:
    """Go's %q of a string."""
    return f'"{"".join(_quoted(character, ascii_only, chr(34)) for character in text)}"'


def quote_character(code: int, *, ascii_only: bool = False) -> str:
    """Go's %q of an integer."""
    character = chr(code) if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return f"'{_quoted(character, ascii_only, chr(39))}'"


_QUOTE_ESCAPES = dict(zip("\a\b\f\n\r\t\v\\", (rf"\{letter}" for letter in "abfnrtv\\"), strict=True))


def _quoted(character: str, ascii_only: bool, mark: str) -> str:
    code = ord(character)
    if character in _QUOTE_ESCAPES:
        return _QUOTE_ESCAPES[character]
    if character == mark:
        return f"\\{mark}"
    if is_printable(character) and not (ascii_only and code >= 0x80):
        return character
    if 0xDC80 <= code < 0xDD00:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_printable(character: str) -> bool:
    """Go's IsPrint, under which the marks of prompts pass too."""
    return character.isprintable() or character in MARKS


def to_json(value: Value) -> str:
    """What Go's json.Marshal gives: compact, maps in sorted order, `<`, `>` and `&` escaped; "" for what JSON lacks."""
    try:
        return "".join(_json(value))
    except ValueError:
        return ""


def _json(value: Value) -> Iterator[str]:
    if value is None or isinstance(value, NoValue | NilSlice):
        yield "null"
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, str):
        yield _json_string(value)
    elif isinstance(value, int):
        yield str(int(value))
    elif isinstance(value, float):
        yield _json_float(value)
    elif isinstance(value, bytes):
        yield f'"{base64.b64encode(value).decode()}"'
    elif isinstance(value, TypeNames) and len(value) == 1:
        yield _json_string(value[0])
    elif isinstance(value, Struct):
        yield from _json_object(_json_fields(value))
    elif isinstance(value, Mapping):
        yield from _json_object((key, value[key]) for key in sorted(value))
    elif isinstance(value, complex):
        raise ValueError("JSON has no complex numbers")
    else:
        yield "["
        for index, item in enumerate(value):
            yield "," if index else ""
            yield from _json(item)
        yield "]"


def _json_fields(value: Struct) -> Iterator[tuple[str, Value]]:
    for field, name in value.shape.fields.items():
        content = value.values[field]
        is_empty = content is None or (not isinstance(content, Struct) and not content)
        if not (field in value.shape.optional and is_empty):
            yield name, content


def _json_object(entries: Iterable[tuple[str, Value]]) -> Iterator[str]:
    yield "{"
    for index, (key, content) in enumerate(entries):
        yield f"{',' if index else ''}{_json_string(key)}:"
        yield from _json(content)
    yield "}"


def _json_string(text: str) -> str:
    quoted = json.dumps(clean_text(text), ensure_ascii=False)
    return _JSON_ESCAPES.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


def _json_float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("JSON has no infinity and no NaN")
    if value and not 1e-6 <= abs(value) < 1e21:
        return re.sub(r"e-0(\d)$", r"e-\1", exponent_float(value))
    return plain_float(value)


def character_text(code: int) -> str:
    """The character of a code point; Go puts U+FFFD for what is none."""
    return chr(code) if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def text_of_bytes(value: Value) -> str | None:
    """The text that a list of bytes holds; None for other lists."""
    if isinstance(value, bytes):
        return decode_text(value)
    if value and is_list(value) and all(isinstance(item, Byte) for item in value):
        return decode_text(bytes(value))
    return None
