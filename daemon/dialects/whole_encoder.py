"""What encoders of answers in one piece share: such calls are never streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Event
from .endpoint import AnyCall, Stamp


class WholeEncoder:
    """Prints one JSON value. What is in it is the subclass's: `_answer`."""

    content_type = "application/json; charset=utf-8"
    stream_content_type = content_type

    def __init__(self, call: AnyCall, stamp: Stamp) -> None:
        self._call = call
        self._stamp = stamp

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """Nothing."""
        del event, choice
        return b""

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def ping(self) -> bytes:
        """Nothing."""
        return b""

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """The value as JSON."""
        return msgspec.json.encode(self._answer(choices[0]))

    def error(self, error: CorralError) -> bytes:
        """Nothing: errors come before the first byte."""
        del error
        return b""

    def _answer(self, events: Sequence[Event]) -> Any:
        """The value that answers the call."""
        raise NotImplementedError
