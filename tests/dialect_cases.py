"""Golden cases of dialects: a body with the call that it makes, and events with what an encoder prints of them.

A case is a file of tests/golden/dialects/DIALECT: `path` and `body`, then `call` (only what is not as in an empty call)
or `events` with `whole` (the answer) and `stream` (its lines). The clock of every answer stands at 1 second.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from corral.core.events import Event
from corral.daemon.dialects import DIALECTS
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


ENDPOINTS = {
    (dialect, endpoint.path): endpoint
    for dialect, row in DIALECTS.items()
    for endpoint in cast("tuple[Endpoint, ...]", pkgutil.resolve_name(row))
}


def load_cases(part: str) -> list[Any]:
    """A test parameter for every case that has a part, `call` or `events`, named by its folder and file."""
    cases = {file: msgspec.json.decode(file.read_bytes(), type=Case) for file in sorted(FOLDER.glob("*/*.json"))}
    return [
        pytest.param(ENDPOINTS[file.parent.name, case.path], case, id=f"{file.parent.name}-{file.stem}")
        for file, case in cases.items()
        if getattr(case, part) is not None
    ]


def summarize(call: AnyCall) -> dict[str, Any]:
    """A call's fields that are not as in an empty one, without `details`, as plain values."""
    empty: AnyCall = Call(model="") if isinstance(call, Call) else EmbedCall(model="")
    values, defaults = (msgspec.json.decode(msgspec.json.encode(value)) for value in (call, empty))
    return {name: value for name, value in values.items() if value != defaults[name] and name != "details"}


def print_answer(endpoint: Endpoint, case: Case) -> tuple[Any, list[str]]:
    """The answer in one piece, and the lines of the stream: the events of all choices one after the other."""
    call = endpoint.read(case.body)
    assert case.events is not None
    encoder = endpoint.encoder(call, STAMP)
    data = b"".join(encoder.chunk(event, index) for index, events in enumerate(case.events) for event in events)
    lines = (data + encoder.end()).decode().split("\n")
    whole = msgspec.json.decode(endpoint.encoder(call, STAMP).whole(case.events))
    return whole, [line for line in lines if line]
