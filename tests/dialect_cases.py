"""Golden cases of dialects: a body with the call that it makes, and events with what an encoder prints of them.

A case is a file of tests/golden/dialects/DIALECT: `path` and `body`, then `call` (only what is not as in an empty call)
or `events` with `whole` (the answer) and `stream` (its lines). The clock of every answer stands at 1 second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from corral.core.events import Event
from corral.daemon.dialects.endpoint import AnyCall, Call, EmbedCall, Endpoint, Stamp

FOLDER = Path(__file__).parent / "golden" / "dialects"
STAMP = Stamp("0123456789abcdef01234567", lambda: 1_000_000_000)


class Case(msgspec.Struct, omit_defaults=True):
    """One file."""

    path: str
    body: dict[str, Any]
    call: dict[str, Any] | None = None
    events: list[list[Event]] | None = None
    whole: Any = None
    stream: list[str] | None = None


def load_cases(dialect: str, part: str) -> dict[str, Case]:
    """The cases of a dialect that have a part, `call` or `events`, by the names of their files."""
    files = sorted((FOLDER / dialect).glob("*.json"))
    cases = {file.stem: msgspec.json.decode(file.read_bytes(), type=Case) for file in files}
    return {name: case for name, case in cases.items() if getattr(case, part) is not None}


def read_call(case: Case, endpoints: tuple[Endpoint, ...]) -> AnyCall:
    """The call of a case's body."""
    return next(endpoint for endpoint in endpoints if endpoint.path == case.path).read(case.body)


def summarize(call: AnyCall) -> dict[str, Any]:
    """A call's fields that are not as in an empty one, without `details`, as plain values."""
    empty: AnyCall = Call(model="") if isinstance(call, Call) else EmbedCall(model="")
    values, defaults = (msgspec.json.decode(msgspec.json.encode(value)) for value in (call, empty))
    return {name: value for name, value in values.items() if value != defaults[name] and name != "details"}


def print_answer(case: Case, endpoints: tuple[Endpoint, ...]) -> tuple[Any, list[str]]:
    """The answer in one piece, and the lines of the stream: the events of all choices one after the other."""
    endpoint = next(endpoint for endpoint in endpoints if endpoint.path == case.path)
    call = endpoint.read(case.body)
    assert case.events is not None
    encoder = endpoint.encoder(call, STAMP)
    data = b"".join(encoder.chunk(event, index) for index, events in enumerate(case.events) for event in events)
    lines = (data + encoder.end()).decode().split("\n")
    whole = msgspec.json.decode(endpoint.encoder(call, STAMP).whole(case.events))
    return whole, [line for line in lines if line]
