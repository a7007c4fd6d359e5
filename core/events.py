"""What a generation gives: deltas, then exactly one terminal event, Done or Failed. Every dialect prints from these."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FinishReason(StrEnum):
    """Why an answer ended. LOAD and UNLOAD are for requests without a prompt, which never reach an engine."""

    STOP = "stop"
    LENGTH = "length"
    LOAD = "load"
    UNLOAD = "unload"


class Candidate(msgspec.Struct, frozen=True):
    """One token with its natural-log probability. `text` may hold U+FFFD where `data` is part of a character."""

    text: str
    data: bytes
    logprob: float


class TokenLogprob(msgspec.Struct, frozen=True):
    """A chosen token and the likeliest ones in its place, best first."""

    chosen: Candidate
    top: tuple[Candidate, ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """Token counts. `prompt_tokens` counts the whole prompt, `cached_tokens` the part that was not evaluated again."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class Timings(msgspec.Struct, frozen=True):
    """Nanoseconds: in the runner on prompt and answer; the daemon adds those of the load and of the whole request."""

    prompt_ns: int = 0
    completion_ns: int = 0
    load_ns: int = 0
    total_ns: int = 0


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class ThinkingDelta(msgspec.Struct, frozen=True, tag="thinking"):
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class ToolCallDelta(msgspec.Struct, frozen=True, tag="tool_call"):
    """A tool call, whole: `arguments` is JSON text."""

    index: int
    id: str
    name: str
    arguments: str


class Rendered(msgspec.Struct, frozen=True, tag="rendered"):
    """The prompt as the model would get it, for requests that only ask for that."""

    text: str
    num_tokens: int


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The end of an answer. `warnings` say what was cut or not honoured; `context` is prompt and answer as tokens."""

    reason: FinishReason
    usage: Usage = Usage()
    timings: Timings = Timings()
    warnings: tuple[str, ...] = ()
    context: tuple[int, ...] = ()


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The end of a request that could not be answered; `code` is a key of errors.ERRORS."""

    code: str
    message: str


Event = TextDelta | ThinkingDelta | ToolCallDelta | Rendered | Done | Failed
Terminal = Done | Failed


def merge_deltas(first: Event, second: Event) -> Event | None:
    """One event with the content of both when both are text or both thinking, else None."""
    if isinstance(first, TextDelta) and isinstance(second, TextDelta):
        return TextDelta(first.text + second.text, first.logprobs + second.logprobs)
    if isinstance(first, ThinkingDelta) and isinstance(second, ThinkingDelta):
        return ThinkingDelta(first.text + second.text, first.logprobs + second.logprobs)
    return None
