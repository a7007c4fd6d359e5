"""Numbers for people: sizes, ages, Go durations, in the words that Ollama uses."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
_NS_PER_SECOND = 1_000_000_000
_NEVER_SECONDS = 100 * 365 * 86400
# (below this many seconds, seconds in the unit, its name)
_AGES = (
    (60, 1, "seconds"),
    (3600, 60, "minutes"),
    (48 * 3600, 3600, "hours"),
    (14 * 86400, 86400, "days"),
    (60 * 86400, 7 * 86400, "weeks"),
    (2 * 365 * 86400, 30 * 86400, "months"),
    (math.inf, 365 * 86400, "years"),
)


def format_size(num_bytes: int) -> str:
    """Bytes in decimal units: `986 B`, `1.2 GB`, `12 GB`."""
    for unit_bytes, unit in _SIZES:
        value = num_bytes / unit_bytes
        if value >= 1:
            exact = value >= 10 or value == int(value)
            return f"{int(value)} {unit}" if exact else f"{value:.1f} {unit}"
    return f"{num_bytes} B"


def parse_time(text: str) -> datetime | None:
    """An RFC 3339 time of the API, or None when it is not one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_when(text: str, now: datetime) -> str:
    """A time of the API relative to now: `3 hours ago`, `4 minutes from now`."""
    moment = parse_time(text)
    if moment is None:
        return text
    seconds = (moment - now).total_seconds()
    return f"{format_span(-seconds)} ago" if seconds <= 0 else f"{format_span(seconds)} from now"


def format_until(text: str, now: datetime) -> str:
    """When a loaded model goes: `4 minutes from now`, `Forever`, or `Stopping...` where that time has passed."""
    moment = parse_time(text)
    if moment is None:
        return text
    seconds = (moment - now).total_seconds()
    if seconds > _NEVER_SECONDS:
        return "Forever"
    return "Stopping..." if seconds < 0 else f"{format_span(seconds)} from now"


def format_span(seconds: float) -> str:
    """A length of time in its largest fitting unit: `About an hour`, `3 weeks`."""
    if seconds < 1:
        return "Less than a second"
    unit_seconds, unit = next((size, name) for limit, size, name in _AGES if seconds < limit)
    count = int(seconds // unit_seconds)
    singular = {"seconds": "1 second", "minutes": "About a minute", "hours": "About an hour"}
    return singular[unit] if count == 1 and unit in singular else f"{count} {unit}"


def format_duration(nanoseconds: int) -> str:
    """A length of time as Go prints it: `1m2.5s`, `1.234567891s`, `12.5ms`, `0s`."""
    if nanoseconds < _NS_PER_SECOND:
        for unit_ns, unit in ((1_000_000, "ms"), (1_000, "µs"), (1, "ns")):
            if nanoseconds >= unit_ns:
                return f"{_decimal(nanoseconds, unit_ns)}{unit}"
        return "0s"
    minutes, rest = divmod(nanoseconds, 60 * _NS_PER_SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _NS_PER_SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    digits = str(part).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}"
