"""What a dialect is made of: endpoints parse a body into a Call, encoders print events. All of it pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from ...core.errors import CorralError, InvalidRequest
from ...core.events import Event
from ...core.types import OutputFormat, Prompt, ToolPolicy
from .bodies import Body, read_body, unknown_fields


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An inference request as a client put it, not yet resolved against its model.

    `model` "" means the one that is loaded, or the default. No `prompts` means that the model is only to be loaded, or
    with keep_alive 0 unloaded; of several, each is answered `num_choices` times, chosen from `best_of` tries. `system`
    and `template` replace the model's own; `options` are typed, `keep_alive` is in seconds; None means what the model
    or daemon has. With `think_optional` a model that cannot think just answers. `previous` is the id of an answer whose
    conversation goes on, and `store` keeps this one's. `details` is what only the call's own encoder reads.
    """

    model: str
    verb: str = "generate"
    prompts: tuple[Prompt, ...] = ()
    stream: bool = False
    system: str | None = None
    template: str | None = None
    options: dict[str, Any] = {}
    logit_bias: tuple[tuple[int, float], ...] = ()
    keep_alive: float | None = None
    truncate: bool = True
    shift: bool = True
    top_logprobs: int | None = None
    format: OutputFormat | None = None
    tool_policy: ToolPolicy = ToolPolicy()
    think_optional: bool = False
    num_choices: int = 1
    best_of: int = 1
    echo: bool = False
    want_context: bool = False
    render_only: bool = False
    include_usage: bool = False
    previous: str | None = None
    store: bool = False
    warnings: tuple[str, ...] = ()
    details: Any = None


class EmbedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request for vectors. With a `query` the inputs are documents to rank: a rank head scores them in pairs with it,
    any other model makes a vector of it too, before theirs. No `inputs` means that the model is only to be loaded.
    """

    model: str
    verb: str = "embed"
    inputs: tuple[str | tuple[int, ...], ...] = ()
    query: str | None = None
    options: dict[str, Any] = {}
    keep_alive: float | None = None
    truncate: bool = True
    normalize: bool = True
    dimensions: int | None = None
    pooling: str | None = None
    stream: bool = False
    warnings: tuple[str, ...] = ()
    details: Any = None


AnyCall = Call | EmbedCall


class Stamp(msgspec.Struct, frozen=True):
    """What tells one answer from the next: an id of 24 hexadecimal digits, and a clock in Unix nanoseconds."""

    id: str
    clock: Callable[[], int]


class Encoder(Protocol):
    """Prints the events of one answer. `choice` counts the answers of a call that has several."""

    content_type: str
    stream_content_type: str

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """One event of a stream, b"" for those that the dialect does not show."""
        ...

    def end(self) -> bytes:
        """What follows when the last choice is done."""
        ...

    def ping(self) -> bytes:
        """What a stream says while nothing else comes, so that nobody takes it for dead."""
        ...

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """The answer in one piece."""
        ...

    def error(self, error: CorralError) -> bytes:
        """An error that ends a stream."""
        ...


def own_status(error: CorralError) -> int:
    """The status of an error in dialects that have no other for it."""
    return error.status


class Endpoint(msgspec.Struct, frozen=True):
    """A method and path, and how to read and answer there. `error` prints what went wrong before the first byte, and
    `status` is the HTTP status of that.
    """

    method: str
    path: str
    body: type[Body]
    parse: Callable[[Any], AnyCall]
    encoder: Callable[[Any, Stamp], Encoder]
    error: Callable[[CorralError], bytes]
    summary: str = ""
    status: Callable[[CorralError], int] = own_status

    def read(self, value: dict[str, Any], strict: bool = False) -> AnyCall:
        """A parsed JSON body as a call. Errors: InvalidRequest; also for warnings when the body or `strict` says so."""
        body = read_body(value, self.body)
        call = self.parse(body)
        warnings = (*unknown_fields(value, self.body), *call.warnings)
        if warnings and (strict or body.strict):
            raise InvalidRequest("; ".join(warnings))
        return msgspec.structs.replace(call, warnings=warnings)
