"""Durations, every form of keep_alive, and times as clients parse them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from corral.core.durations import NEVER, format_expiry, format_time, parse_duration, parse_keep_alive
from corral.core.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("2us", 2e-6),
        ("2µs", 2e-6),
        ("3ns", 3e-9),
        ("-2m", -120),
        ("+1s", 1),
        (".5s", 0.5),
        ("1.s", 1),
        ("0", 0),
        ("-0", 0),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_duration_when_written_as_go_writes_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", "5d", "--5m", "5m ", "5m-3s", "1e3s", ".", ".s", "abc"])
def test_error_when_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 5m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0),
        ("0", 0),
        ("0s", 0),
        (-1, NEVER),
        ("-1", NEVER),
        ("-2m", NEVER),
        (-0.5, NEVER),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (300, 300),
        ("300", 300),
        ("1.5", 1.5),
        (0.5, 0.5),
        (1e18, NEVER),
        (10**400, NEVER),
        (math.inf, NEVER),
        ("9" * 400, NEVER),
        ("9999999h", NEVER),
        ("", None),
        (None, None),
    ],
)
def test_keep_alive_when_valid(value: Any, seconds: float | None) -> None:
    assert parse_keep_alive(value) == seconds


@pytest.mark.parametrize("value", ["5 m", "abc", True, False, [], {}, math.nan, "nan", "inf", " 5m", "1e3", b"5m"])
def test_error_when_keep_alive_is_invalid(value: Any) -> None:
    with pytest.raises(InvalidRequest, match=r'keep_alive .* is not valid: give seconds .* or a duration like "5m"'):
        parse_keep_alive(value)


def test_error_when_keep_alive_is_long() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_keep_alive("x" * 10_000)
    assert len(caught.value.message) < 200


def test_time_when_nanoseconds_are_given() -> None:
    assert format_time(0, 1_700_000_000_000_000_001) == "2023-11-14T22:13:20.000000001Z"
    assert format_time(1_700_000_000.5) == "2023-11-14T22:13:20.500000000Z"


def test_expiry_when_finite_or_never() -> None:
    assert format_expiry(1_700_000_000, 300) == "2023-11-14T22:18:20.000000000Z"
    never = datetime.fromisoformat(format_expiry(1_700_000_000, NEVER)[:19]).replace(tzinfo=UTC)
    # Clients parse it, and it is not in the past.
    assert never.year - 2023 in range(290, 294)
