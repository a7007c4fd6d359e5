"""Pauses in streams are told, and closing the outer end closes the inner one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from corral.daemon.streaming import with_pauses


async def test_silence_is_told_until_something_comes() -> None:
    gate = asyncio.Event()

    async def late() -> AsyncGenerator[str, None]:
        await gate.wait()
        yield "a"
        yield "b"

    seen: list[str | None] = []
    async for item in with_pauses(late(), 0.001, 0.001):
        seen.append(item)
        if len(seen) == 3:
            gate.set()
    assert seen[:3] == [None, None, None]
    assert [item for item in seen if item] == ["a", "b"]


async def test_without_a_limit_nothing_is_told() -> None:
    async def slow() -> AsyncGenerator[str, None]:
        await asyncio.sleep(0.01)
        yield "a"

    assert [item async for item in with_pauses(slow(), 0, 0)] == ["a"]


async def test_closing_ends_what_waits() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[str, None]:
        try:
            await asyncio.Event().wait()
            yield "never"
        finally:
            ended.set()

    steps = with_pauses(endless(), 0.001, 0.001)
    assert await anext(steps) is None
    await steps.aclose()
    assert ended.is_set()


async def test_error_passes_through() -> None:
    async def broken() -> AsyncGenerator[str, None]:
        yield "a"
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        async for _ in with_pauses(broken(), 1, 1):
            pass
