"""Conversations that clients go on with by the id of an answer (OpenAI's previous_response_id), for a bounded time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ..core.errors import InvalidRequest
from ..core.events import Event, TextDelta, ThinkingDelta
from ..core.types import ChatPrompt, Message, Part, Text, Thinking, ToolCall, ToolResult
from .dialects.calls import CallGatherer
from .dialects.endpoint import AnyCall, Call

MAX_KEPT = 1000
MAX_AGE_SECONDS = 3600.0
Choices = Sequence[Sequence[Event]]


class Kept(NamedTuple):
    """A conversation up to an answer, the time of that, and the answer as its client got it."""

    since: float
    messages: tuple[Message, ...]
    answer: bytes


class Sessions:
    """Conversations by the id of their last answer, in memory only: the oldest go first. `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def resume(self, call: AnyCall) -> AnyCall:
        """The call with the conversation that it goes on with put before its own messages.

        Errors: InvalidRequest when that is not known any more.
        """
        if not isinstance(call, Call) or call.previous is None:
            return call
        self._forget_old()
        found = self._kept.get(call.previous)
        if found is None:
            raise InvalidRequest(
                f"previous_response_id: {call.previous[:60]!r} is not known: it was not stored, or longer ago than "
                f"{MAX_AGE_SECONDS / 60:g} minutes; send the whole conversation as `input`"
            )
        prompts = [
            msgspec.structs.replace(prompt, messages=(*found.messages, *_name_results(prompt.messages, found.messages)))
            for prompt in call.prompts
            if isinstance(prompt, ChatPrompt)
        ]
        return msgspec.structs.replace(call, prompts=tuple(prompts))

    def keep(
        self, answer_id: str, call: AnyCall, events: Sequence[Event], whole: Callable[[Choices], bytes] | None = None
    ) -> None:
        """Remember a call's messages and its answer, where the call wants that. `whole` prints it for `find`."""
        if not isinstance(call, Call) or not call.store or not call.prompts:
            return
        prompt = call.prompts[0]
        assert isinstance(prompt, ChatPrompt), "only conversations are stored"
        messages = (*prompt.messages, answer_message(events))
        self._kept[answer_id] = Kept(self._clock(), messages, whole([events]) if whole else b"")
        self._forget_old()

    def find(self, answer_id: str) -> bytes | None:
        """A kept answer as its client got it in one piece, or would have."""
        self._forget_old()
        found = self._kept.get(answer_id)
        return found.answer if found else None

    def forget(self, answer_id: str) -> bool:
        """Drop an answer. False where it was not kept."""
        self._forget_old()
        return self._kept.pop(answer_id, None) is not None

    def _forget_old(self) -> None:
        oldest = self._clock() - MAX_AGE_SECONDS
        while self._kept and (len(self._kept) > MAX_KEPT or next(iter(self._kept.values())).since < oldest):
            self._kept.popitem(last=False)


def answer_message(events: Sequence[Event]) -> Message:
    """An answer as the turn that it is in the conversation."""
    thinking = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    parts: list[Part] = [Thinking(thinking)] if thinking else []
    parts.append(Text(text))
    parts += [ToolCall(call.id, call.name, call.arguments) for call in CallGatherer.gather(events)]
    return Message("assistant", tuple(parts))


def _name_results(messages: Sequence[Message], earlier: Sequence[Message]) -> list[Message]:
    """Messages with the names of the tools whose results they hold: clients give ids only, templates want names."""
    calls = [part for message in earlier for part in message.parts if isinstance(part, ToolCall)]
    names = {call.id: call.name for call in calls}

    def named(part: Part) -> Part:
        if isinstance(part, ToolResult) and not part.name:
            return msgspec.structs.replace(part, name=names.get(part.id, ""))
        return part

    return [msgspec.structs.replace(message, parts=tuple(map(named, message.parts))) for message in messages]
