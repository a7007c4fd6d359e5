"""Times on the wire: Go durations, keep_alive in all its forms, RFC 3339 with nanoseconds."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from .errors import InvalidRequest

NEVER = math.inf
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
# What "for ever" looks like in an answer: Go's largest duration from now is about 290 years.
_FOREVER_SECONDS = (1 << 63) / 1e9


def parse_duration(text: str) -> float:
    """Read a Go duration ("1h30m", "500ms", "-2m") into seconds.

    Errors: ValueError when the text is not one.
    """
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    pieces = list(_PIECE.finditer(rest))
    if not pieces or "".join(piece.group(0) for piece in pieces) != rest:
        raise ValueError(f"{text!r} is not a duration such as 5m, 1h30m or 500ms")
    return sign * sum(float(piece.group(1)) * _UNITS[piece.group(2)] for piece in pieces)


def parse_keep_alive(value: object) -> float | None:
    """Read keep_alive: seconds as number or numeric text, or a Go duration. Negative means NEVER, None the default.

    Errors: InvalidRequest for any other type or text.
    """
    if value is None or value == "":
        return None
    seconds: float
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _bad_keep_alive(value)
    if isinstance(value, str):
        try:
            seconds = float(value) if re.fullmatch(r"-?\d+(\.\d+)?", value) else parse_duration(value)
        except ValueError:
            raise _bad_keep_alive(value) from None
    else:
        # An integer beyond the range of floats means "never" as much as a merely huge one does.
        seconds = float(max(min(value, 1 << 63), -1))
    if math.isnan(seconds):
        raise _bad_keep_alive(value)
    return NEVER if seconds < 0 or seconds >= _FOREVER_SECONDS else seconds


def format_time(seconds: float, nanoseconds: int | None = None) -> str:
    """Unix time as RFC 3339 in UTC with nanoseconds and Z."""
    total_ns = int(seconds * 1e9) if nanoseconds is None else nanoseconds
    whole, fraction = divmod(total_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def format_expiry(now: float, keep_alive: float) -> str:
    """When a model loaded at `now` (Unix seconds) goes, with NEVER shown as some 290 years ahead."""
    return format_time(now + min(keep_alive, _FOREVER_SECONDS - 1))


def _bad_keep_alive(value: object) -> InvalidRequest:
    shown = repr(value)[:60]
    return InvalidRequest(f'keep_alive {shown} is not valid: give seconds (300, -1 for ever) or a duration like "5m"')
