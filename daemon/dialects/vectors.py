"""Vectors of embedding events, as numbers."""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence

from ...core.events import Embedded, Event


def read_vectors(events: Sequence[Event]) -> list[array.array[float]]:
    """The vectors among events, as float32 numbers."""
    return [_numbers(data) for event in events if isinstance(event, Embedded) for data in event.vectors]


def _numbers(data: bytes) -> array.array[float]:
    numbers = array.array("f", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
