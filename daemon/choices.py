"""Several answers to one call: their events side by side, and the best of more tries than were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from ..core.events import Event, TextDelta, ThinkingDelta


async def merge(streams: Sequence[AsyncIterator[Event]]) -> AsyncGenerator[tuple[int, Event], None]:
    """Events of all streams as they come, each with the number of its stream. Ends when the last one does."""
    if len(streams) == 1:
        async for event in streams[0]:
            yield 0, event
        return
    waiting = {asyncio.ensure_future(anext(stream)): index for index, stream in enumerate(streams)}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=waiting.__getitem__):
                index = waiting.pop(task)
                try:
                    event = task.result()
                except StopAsyncIteration:
                    continue
                waiting[asyncio.ensure_future(anext(streams[index]))] = index
                yield index, event
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def choose_best(tries: list[list[Event]], num_choices: int, num_prompts: int) -> list[list[Event]]:
    """Of the tries at each prompt, the likeliest by mean log-probability of their tokens, best first."""
    each = len(tries) // num_prompts
    groups = [tries[start : start + each] for start in range(0, len(tries), each)]
    return [chosen for group in groups for chosen in sorted(group, key=_mean_logprob, reverse=True)[:num_choices]]


def _mean_logprob(events: Sequence[Event]) -> float:
    deltas = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
    values = [entry.chosen.logprob for delta in deltas for entry in delta.logprobs if entry.chosen.logprob is not None]
    return sum(values) / len(values) if values else float("-inf")
