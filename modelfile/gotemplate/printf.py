"""Go's printf: verbs, flags, width and precision, argument numbers, and the texts it puts where these are wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from . import printing
from .values import Byte, Fault, NoValue, Struct, Value, encode_text, is_list, type_name

# Go's own limit on widths and precisions is a million; no prompt is laid out in columns that wide.
_MAX_WIDTH = 10_000
# Brackets are short, so that no text makes the search for their ends long.
_DIRECTIVE = re.compile(
    r"%(?P<flags>[-+# 0]*)(?P<first>\[[^\]]{0,20}\])?(?P<width>\*|\d+)?"
    r"(?P<dot>\.(?=.))?(?(dot)(?P<second>\[[^\]]{0,20}\])?(?P<precision>\*|\d+)?)(?P<third>\[[^\]]{0,20}\])?(?P<verb>.)?",
    re.DOTALL,
)
_RADIX = {"b": ("b", "0b"), "o": ("o", "0"), "O": ("o", "0o"), "x": ("x", "0x"), "X": ("X", "0X"), "d": ("d", "")}


@dataclass(frozen=True, slots=True)
class Spec:
    """One directive. `width` and `precision` are None when not given."""

    verb: str
    flags: str = ""
    width: int | None = None
    precision: int | None = None

    def has(self, flag: str) -> bool:
        """Whether a flag is set; `-` turns `0` off."""
        return flag in self.flags and not (flag == "0" and "-" in self.flags)


class _Arguments:
    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.position = 0
        self.is_reordered = False
        self.is_good = True

    def seek(self, index: str | None) -> None:
        """Go to the argument that `[n]` names."""
        if index is None:
            return
        self.is_reordered = True
        digits = index[1:-1]
        if digits.isdecimal() and digits.isascii() and len(digits) < 9 and 0 < int(digits) <= len(self.values):
            self.position = int(digits) - 1
        else:
            self.is_good = False

    def take_number(self) -> int | None:
        """The number of a `*`; None when it is none, or too large."""
        if self.position >= len(self.values):
            return None
        value = self.values[self.position]
        self.position += 1
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return int(value) if is_number and abs(value) <= 1_000_000 else None


def sprintf(template: str, values: Sequence[Value]) -> str:
    """The text. Errors: Fault for a width out of all proportion."""
    pieces: list[str] = []
    arguments = _Arguments(values)
    position = 0
    while (percent := template.find("%", position)) >= 0:
        pieces.append(template[position:percent])
        found = _DIRECTIVE.match(template, percent)
        assert found is not None
        pieces.append(_directive(found, arguments))
        position = found.end()
    pieces.append(template[position:])
    if not arguments.is_reordered and arguments.position < len(values):
        extra = ", ".join(_named(value) for value in values[arguments.position :])
        pieces.append(f"%!(EXTRA {extra})")
    return "".join(pieces)


def _named(value: Value) -> str:
    return "<nil>" if _is_nothing(value) else f"{type_name(value)}={printing.show(value)}"


def _is_nothing(value: Value) -> bool:
    return value is None or isinstance(value, NoValue)


def _directive(found: re.Match[str], arguments: _Arguments) -> str:
    arguments.is_good = True
    complaints: list[str] = []
    flags = found["flags"]
    arguments.seek(found["first"])
    width = _size(found["width"], arguments, "%!(BADWIDTH)", complaints)
    if width is not None and width < 0:
        width, flags = -width, f"{flags}-"
    arguments.seek(found["second"])
    precision = _size(found["precision"], arguments, "%!(BADPREC)", complaints)
    if precision is not None and precision < 0:
        complaints.append("%!(BADPREC)")
        precision = None
    elif found["dot"] and not found["precision"]:
        precision = 0
    arguments.seek(found["third"])
    return "".join(complaints) + _verb(Spec(found["verb"] or "", flags, width, precision), arguments)


def _size(text: str | None, arguments: _Arguments, complaint: str, complaints: list[str]) -> int | None:
    if text is None:
        return None
    number = arguments.take_number() if text == "*" else int(text[:8])
    if number is None:
        complaints.append(complaint)
    elif abs(number) > _MAX_WIDTH:
        raise Fault(f"a width or precision of {number} (at most {_MAX_WIDTH})")
    return number


def _verb(spec: Spec, arguments: _Arguments) -> str:
    if not spec.verb:
        return "%!(NOVERB)"
    if spec.verb == "%":
        return "%"
    if not arguments.is_good:
        return f"%!{spec.verb}(BADINDEX)"
    if arguments.position >= len(arguments.values):
        return f"%!{spec.verb}(MISSING)"
    value = arguments.values[arguments.position]
    arguments.position += 1
    if spec.verb == "T":
        return _pad(type_name(value), replace(spec, precision=None))
    if _is_nothing(value):
        return _pad("<nil>", spec) if spec.verb == "v" else f"%!{spec.verb}(<nil>)"
    if spec.verb == "p":
        return _bad(value, spec)
    if spec.verb == "v" and spec.has("#"):
        return _pad(_go_syntax(value), spec)
    return format_value(value, spec)


def format_value(value: Value, spec: Spec) -> str:
    """One value under one directive; lists, maps and structs apply it to what they hold."""
    method = printing.method_text(value) if spec.verb in "vsqxX" and not (spec.verb == "v" and spec.has("#")) else None
    if method is not None:
        return _format_text(method, spec)
    if isinstance(value, bool):
        return _pad(printing.show(value), spec) if spec.verb in "tv" else _bad(value, spec)
    if isinstance(value, int):
        return _format_integer(int(value), value, spec)
    if isinstance(value, float):
        return _format_float(value, spec)
    if isinstance(value, complex):
        return _format_complex(value, spec)
    if isinstance(value, str):
        return _format_text(value, spec)
    return _format_holder(value, spec)


def _go_syntax(value: Value) -> str:
    """%#v: the value as Go would write it in a program."""
    if _is_nothing(value):
        return "interface {}(nil)"
    if isinstance(value, str):
        return printing.quote(value)
    if isinstance(value, Byte):
        return f"{int(value):#x}"
    if isinstance(value, bool | int | float | complex):
        return printing.show(value)
    if isinstance(value, Struct):
        items = [f"{name}:{_go_syntax(item)}" for name, item in value.values.items()]
    elif isinstance(value, Mapping):
        items = [f"{printing.quote(key)}:{_go_syntax(value[key])}" for key in sorted(value)]
    else:
        items = [_go_syntax(item) for item in value]
    return f"{type_name(value)}{{{', '.join(items)}}}"


def _bad(value: Value, spec: Spec) -> str:
    return f"%!{spec.verb}({_named(value)})"


def _pad(text: str, spec: Spec, *, zeros: bool = True) -> str:
    if spec.width is None or len(text) >= spec.width:
        return text
    if spec.has("-"):
        return text.ljust(spec.width)
    return text.rjust(spec.width, "0" if zeros and spec.has("0") else " ")


def _format_holder(value: Value, spec: Spec) -> str:
    text = printing.text_of_bytes(value)
    if text is not None and spec.verb in "sqxX":
        return _format_text(text, spec)
    if isinstance(value, Struct):
        items = value.values.items()
        names = spec.verb == "v" and spec.has("+")
        return f"{{{' '.join((f'{name}:' if names else '') + _format_item(item, spec) for name, item in items)}}}"
    if isinstance(value, Mapping):
        entries = (f"{_format_text(key, spec)}:{_format_item(value[key], spec)}" for key in sorted(value))
        return f"map[{' '.join(entries)}]"
    assert is_list(value)
    return f"[{' '.join(_format_item(item, spec) for item in value)}]"


def _format_item(value: Value, spec: Spec) -> str:
    return _pad("<nil>", spec) if _is_nothing(value) else format_value(value, spec)


def _format_text(text: str, spec: Spec) -> str:
    if spec.verb in "vs" and not spec.has("#"):
        return _pad(text if spec.precision is None else text[: spec.precision], spec)
    if spec.verb in "qv":
        cut = text if spec.precision is None else text[: spec.precision]
        if spec.has("#") and spec.verb == "q" and "`" not in cut and cut.isprintable():
            return _pad(f"`{cut}`", spec)
        return _pad(printing.quote(cut, ascii_only=spec.verb == "q" and spec.has("+")), spec)
    if spec.verb in "xX":
        return _pad(_hex_of_text(text, spec), spec)
    return _bad(text, spec)


def _hex_of_text(text: str, spec: Spec) -> str:
    data = encode_text(text)
    data = data if spec.precision is None else data[: spec.precision]
    prefix = f"0{spec.verb}" if spec.has("#") and data else ""
    digits = data.hex(" ") if spec.has(" ") else data.hex()
    digits = digits.upper() if spec.verb == "X" else digits
    return prefix + (digits.replace(" ", f" {prefix}") if prefix else digits)


def _format_integer(number: int, value: Value, spec: Spec) -> str:
    if spec.verb in "vd":
        return _digits(number, _without_plus(replace(spec, verb="d")) if spec.verb == "v" else spec)
    if spec.verb in _RADIX:
        return _digits(number, spec)
    if spec.verb == "c":
        return _pad(printing.character_text(number), spec)
    if spec.verb == "q":
        return _pad(printing.quote_character(number, ascii_only=spec.has("+")), spec)
    if spec.verb == "U":
        text = f"U+{number & (1 << 64) - 1:0{max(4, spec.precision or 0)}X}"
        if spec.has("#") and printing.is_printable(printing.character_text(number)):
            text += f" '{printing.character_text(number)}'"
        return _pad(text, spec, zeros=False)
    return _bad(value, spec)


def _without_plus(spec: Spec) -> Spec:
    """As a plus means something else to %v: names of fields."""
    return replace(spec, flags=spec.flags.replace("+", ""))


def _digits(number: int, spec: Spec) -> str:
    letter, prefix = _RADIX[spec.verb]
    digits = format(abs(number), letter)
    sign = "-" if number < 0 else "+" if spec.has("+") else " " if spec.has(" ") else ""
    if spec.precision is not None:
        if spec.precision == 0 and number == 0:
            return _pad("", spec, zeros=False)
        digits = digits.rjust(spec.precision, "0")
    elif spec.has("0") and spec.width is not None:
        digits = digits.rjust(spec.width - len(sign), "0")
    if (spec.has("#") or spec.verb == "O") and not (spec.verb == "o" and digits.startswith("0")):
        digits = prefix + digits
    return _pad(sign + digits, spec, zeros=False)


def _format_float(value: float, spec: Spec) -> str:
    if spec.verb not in "vgGxXfFeE":
        return _bad(value, spec)
    spec = _without_plus(spec) if spec.verb == "v" else spec
    text = _float_text(value, spec)
    is_number = math.isfinite(value)
    sign = "-" if text[0] == "-" else "+" if spec.has("+") or text[0] == "+" else " " if spec.has(" ") else ""
    body = text.lstrip("+-")
    if spec.has("0") and is_number and spec.width is not None:
        body = body.rjust(spec.width - len(sign), "0")
    return _pad(sign + body, spec, zeros=False)


def _float_text(value: float, spec: Spec) -> str:
    """Digits with a minus where one is due."""
    if not math.isfinite(value):
        return printing.show_float(value)
    sharp = "#" if spec.has("#") else ""
    if spec.verb in "xX":
        mantissa, exponent = value.hex().split("p")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent[0]}{exponent[1:]:0>2}"
    elif spec.verb in "fFeE":
        text = format(value, f"{sharp}.{6 if spec.precision is None else spec.precision}{spec.verb.lower()}")
    elif spec.precision is None and not sharp:
        text = printing.show_float(value)
    else:
        text = format(value, f"{sharp}.{6 if spec.precision is None else spec.precision}g")
    return text.upper() if spec.verb in "GEX" else text


def _format_complex(value: complex, spec: Spec) -> str:
    if spec.verb not in "vgGfFeE":
        return _bad(value, spec)
    plain = replace(spec, verb="g") if spec.verb == "v" else spec
    signed = replace(plain, flags=plain.flags + "+")
    return f"({_format_float(value.real, plain)}{_format_float(value.imag, signed)}i)"
