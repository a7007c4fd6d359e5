"""Go's constants as templates write them: numbers, characters and strings."""

from __future__ import annotations

import re

_INTEGER = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?[0-9])*)", re.ASCII
)
_DIGITS = r"\d(?:_?\d)*"
_FLOAT = re.compile(rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?", re.ASCII)
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_COMPLEX = re.compile(r"(?P<real>[+-]?[^+-].*?(?<![eEpP]))(?P<imaginary>[+-].*)i")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)")
_SIMPLE = dict(zip("abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\"", strict=True))


def read_number(text: str) -> int | float | complex | None:
    """The value of a number; None when it is too large for Go's int but fits uint64.

    Errors: ValueError for what is no number of Go, or is too large for any.
    """
    if text.endswith("i"):
        return _read_complex(text)
    if _INTEGER.fullmatch(text):
        value = _read_integer(text)
        if -(1 << 63) <= value < 1 << 63:
            return value
        if 0 <= value < 1 << 64 and text[0] != "+":
            return None
        raise ValueError(f"integer overflow: {text[:40]}")
    return _read_float(text)


def _read_integer(text: str) -> int:
    digits = text.lstrip("+-").replace("_", "")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        digits = "0o" + digits[1:]
    if len(digits) > 80:
        raise ValueError("integer overflow")
    return int(digits, 0) * (-1 if text[0] == "-" else 1)


def _read_float(text: str) -> float:
    value = float("inf")
    plain = text.replace("_", "")
    if _HEX_FLOAT.fullmatch(plain):
        try:
            value = float.fromhex(plain)
        except OverflowError:
            value = float("inf")
    elif _FLOAT.fullmatch(text) and any(mark in text for mark in ".eE"):
        value = float(plain)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"illegal number syntax: {text[:40]}")
    return value


def _read_complex(text: str) -> complex:
    parts = _COMPLEX.fullmatch(text)
    real, imaginary = (parts["real"], parts["imaginary"]) if parts else ("0", text[:-1])
    values = []
    for part in (real, imaginary):
        # An imaginary part may have leading zeros, which would make an integer octal.
        number = float(part.replace("_", "")) if _FLOAT.fullmatch(part) else read_number(part)
        if not isinstance(number, int | float):
            raise ValueError(f"illegal number syntax: {text[:40]}")
        values.append(float(number))
    return complex(*values)


def read_character(text: str) -> int:
    """The code point of a constant such as 'a', given with its quotes. Errors: ValueError."""
    body = text[1:-1]
    values = _unescape(body, "'")
    if len(values) != 1:
        raise ValueError(f"malformed character constant: {text[:40]}")
    value = values[0]
    return value if isinstance(value, int) else ord(value)


def read_string(text: str) -> str:
    """The text of a quoted or raw string, given with its quotes. Bytes that are no UTF-8 become lone surrogates.

    Errors: ValueError for an escape that Go does not know.
    """
    if text[0] == "`":
        return text[1:-1].replace("\r", "")
    values = _unescape(text[1:-1], '"')
    if not any(isinstance(value, int) for value in values):
        return "".join(value for value in values if isinstance(value, str))
    data = b"".join(bytes([v]) if isinstance(v, int) else v.encode("utf-8", "surrogateescape") for v in values)
    return data.decode("utf-8", "surrogateescape")


def _unescape(body: str, quote: str) -> list[str | int]:
    """Characters, and numbers for the bytes that \\x and octal escapes give."""
    values: list[str | int] = []
    position = 0
    while position < len(body):
        if body[position] == quote:
            raise ValueError("invalid syntax")
        if body[position] != "\\":
            values.append(body[position])
            position += 1
            continue
        found = _ESCAPE.match(body, position)
        assert found is not None
        values.append(_escaped(found, quote))
        position = found.end()
    return values


def _escaped(found: re.Match[str], quote: str) -> str | int:
    simple, octal, byte, short, long = found.groups()
    if simple and not (simple in "'\"" and simple != quote):
        return _SIMPLE[simple]
    if octal and int(octal, 8) < 256:
        return int(octal, 8)
    if byte:
        return int(byte, 16)
    if short or long:
        code = int(short or long, 16)
        if code < 0x110000 and not 0xD800 <= code < 0xE000:
            return chr(code)
    raise ValueError("invalid syntax")
