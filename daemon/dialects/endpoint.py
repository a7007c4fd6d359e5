"""What a dialect is made of: endpoints parse a body into a Call, encoders print events. All of it pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from ...core.errors import CorralError
from ...core.events import Event
from ...core.types import OutputFormat, Prompt


class Call(msgspec.Struct, frozen=True):
    """An inference request as a client put it, not yet resolved against its model.

    `prompt` is None when the model is only to be loaded, or with keep_alive 0 unloaded. `system` and `template` replace
    the model's own; `options` are typed, `keep_alive` is in seconds; None means what the model or daemon has. `needs`
    names capabilities that the model must have. `include_usage` is for encoders whose streams count on request.
    """

    model: str
    verb: str
    prompt: Prompt | None
    stream: bool = True
    system: str | None = None
    template: str | None = None
    options: dict[str, Any] = {}
    keep_alive: float | None = None
    truncate: bool = True
    shift: bool = True
    top_logprobs: int | None = None
    format: OutputFormat | None = None
    want_context: bool = False
    render_only: bool = False
    needs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    include_usage: bool = False


class Encoder(Protocol):
    """Prints the events of one answer."""

    content_type: str
    stream_content_type: str

    def chunk(self, event: Event) -> bytes:
        """One event of a stream, b"" for those that the dialect does not show."""
        ...

    def whole(self, events: Iterable[Event]) -> bytes:
        """The answer in one piece."""
        ...

    def error(self, error: CorralError) -> bytes:
        """An error that ends a stream."""
        ...


class Endpoint(msgspec.Struct, frozen=True):
    """A method and path, and how to read and answer there. `error` prints what went wrong before the first byte."""

    method: str
    path: str
    parse: Callable[[dict[str, Any]], Call]
    encoder: Callable[[Call], Encoder]
    error: Callable[[CorralError], bytes]
