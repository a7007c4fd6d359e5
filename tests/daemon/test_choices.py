"""Several answers to one call: side by side, and the best of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from corral.core.events import Candidate, Done, Event, FinishReason, TextDelta, TokenLogprob
from corral.daemon.choices import choose_best, merge

DONE = Done(FinishReason.STOP)


async def stream(*texts: str, gate: asyncio.Event | None = None) -> AsyncIterator[Event]:
    for text in texts:
        if gate is not None:
            await gate.wait()
        yield TextDelta(text)
    yield DONE


async def test_events_come_as_they_are_ready_with_their_number() -> None:
    gate = asyncio.Event()
    seen: list[tuple[int, Event]] = []
    async for step in merge([stream("slow", gate=gate), stream("a", "b")]):
        seen.append(step)
        if step == (1, DONE):
            gate.set()
    assert seen == [(1, TextDelta("a")), (1, TextDelta("b")), (1, DONE), (0, TextDelta("slow")), (0, DONE)]


async def test_error_of_one_ends_all() -> None:
    async def broken() -> AsyncIterator[Event]:
        yield TextDelta("x")
        raise ValueError("broken")

    gate = asyncio.Event()
    with pytest.raises(ValueError, match="broken"):
        async for _ in merge([stream("never", gate=gate), broken()]):
            pass


def answer(text: str, *logprobs: float) -> list[Event]:
    return [TextDelta(text, tuple(TokenLogprob(Candidate("t", b"t", value)) for value in logprobs)), DONE]


def test_best_are_the_likeliest_by_mean_for_each_prompt() -> None:
    long, short, bad = answer("long", -1, -1, -1), answer("short", -2), answer("bad", -5)
    assert choose_best([bad, short, long, short, long, bad], 2, num_prompts=2) == [long, short, long, short]
