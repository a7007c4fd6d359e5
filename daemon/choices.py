"""Several answers to one call: their events side by side, and the best of more tries than were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from operator import itemgetter

from ..core.events import Event, TextDelta, ThinkingDelta


async def merge(streams: Sequence[AsyncIterator[Event]]) -> AsyncGenerator[tuple[int, Event], None]:
    """Events of all streams as they come, each with the number of its stream. Ends when the last one does."""
    if len(streams) == 1:
        async for event in streams[0]:
            yield 0, event
        return

    def wait_for(index: int) -> asyncio.Task[tuple[int, Event | None]]:
        return asyncio.ensure_future(_next(index, streams[index]))

    waiting = {wait_for(index) for index in range(len(streams))}
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found = [(index, event) for index, event in (task.result() for task in done) if event is not None]
            waiting |= {wait_for(index) for index, _ in found}
            for step in sorted(found, key=itemgetter(0)):
                yield step
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _next(index: int, stream: AsyncIterator[Event]) -> tuple[int, Event | None]:
    """The next event of a stream, None at its end, with the stream's number."""
    return index, await anext(stream, None)


def choose_best(tries: list[list[Event]], num_choices: int, num_prompts: int) -> list[list[Event]]:
    """Of the tries at each prompt, the likeliest by mean log-probability of their tokens, best first."""
    each = len(tries) // num_prompts
    groups = [tries[start : start + each] for start in range(0, len(tries), each)]
    return [chosen for group in groups for chosen in sorted(group, key=_mean_logprob, reverse=True)[:num_choices]]


def _mean_logprob(events: Sequence[Event]) -> float:
    deltas = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
    values = [entry.chosen.logprob for delta in deltas for entry in delta.logprobs if entry.chosen.logprob is not None]
    return sum(values) / len(values) if values else float("-inf")
