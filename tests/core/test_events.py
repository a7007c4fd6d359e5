"""Merging of deltas, which a slow client relies on, and the wire tags of events."""

from __future__ import annotations

import itertools
from typing import get_args

import msgspec
import pytest
from corral.core.events import (
    Candidate,
    Done,
    Event,
    Failed,
    FinishReason,
    Rendered,
    Terminal,
    TextDelta,
    ThinkingDelta,
    TokenLogprob,
    ToolCallDelta,
    merge_deltas,
)

FIRST, SECOND = (TokenLogprob(Candidate(text, text.encode(), -1.0)) for text in "ab")
OTHERS: list[Event] = [
    ToolCallDelta(0, "i", "f", "{}"),
    Rendered("x", 1),
    Done(FinishReason.STOP),
    Failed("internal", "x"),
]


@pytest.mark.parametrize("kind", [TextDelta, ThinkingDelta])
def test_merge_when_both_are_of_one_kind(kind: type[TextDelta] | type[ThinkingDelta]) -> None:
    assert merge_deltas(kind("a", (FIRST,)), kind("b", (SECOND,))) == kind("ab", (FIRST, SECOND))


@pytest.mark.parametrize("other", [ThinkingDelta("b"), *OTHERS], ids=lambda other: type(other).__name__)
def test_merge_when_kinds_differ(other: Event) -> None:
    assert merge_deltas(TextDelta("a"), other) is None
    assert merge_deltas(other, TextDelta("a")) is None


def test_merge_when_neither_is_text() -> None:
    for first, second in itertools.product(OTHERS, repeat=2):
        assert merge_deltas(first, second) is None


def test_merge_when_pieces_are_of_one_call() -> None:
    first, rest = ToolCallDelta(0, "i", "f", '{"a"'), ToolCallDelta(0, "", "", ": 1}")
    assert merge_deltas(first, rest) == ToolCallDelta(0, "i", "f", '{"a": 1}')


def test_tags_when_events_are_encoded() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(Event)]
    assert len(set(tags)) == len(tags)
    assert set(get_args(Terminal)) < set(get_args(Event))


def test_reason_when_decoded() -> None:
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(Done(FinishReason.LENGTH)), type=Event)
    assert isinstance(decoded, Done)
    assert decoded.reason is FinishReason.LENGTH
