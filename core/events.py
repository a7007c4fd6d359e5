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
    """One token with its natural-log probability. `text` may hold U+FFFD where `data` is part of a character.

    `logprob` is None for the first token of a prompt, which nothing foretells.
    """

    text: str
    data: bytes
    logprob: float | None
    token: int = -1


class TokenLogprob(msgspec.Struct, frozen=True):
    """A chosen token and the likeliest ones in its place, best first."""

    chosen: Candidate
    top: tuple[Candidate, ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """Token counts. `prompt_tokens` counts the whole prompt, `cached_tokens` the part that was not evaluated again.

    Of the answer, `drafted_tokens` were guessed ahead and tried, and `accepted_tokens` of them came true.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0


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
    """A piece of a tool call. The first of an index has `id` and `name`; the `arguments` of an index join to JSON."""

    index: int
    id: str
    name: str
    arguments: str


class Rendered(msgspec.Struct, frozen=True, tag="rendered"):
    """The prompt as the model would get it, for requests that only ask for that.

    `tokens` and `pieces`, the bytes of each, are there where the request wants its context.
    """

    text: str
    num_tokens: int
    tokens: tuple[int, ...] = ()
    pieces: tuple[bytes, ...] = ()


class Embedded(msgspec.Struct, frozen=True, tag="embedded"):
    """One vector for each input, in order: little-endian float32 of (dimensions,)."""

    vectors: tuple[bytes, ...]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The end of an answer. `warnings` say what was cut or not honoured; `context` is prompt and answer as tokens.

    `stop` is the stop string that ended it, where one did.
    """

    reason: FinishReason
    usage: Usage = Usage()
    timings: Timings = Timings()
    warnings: tuple[str, ...] = ()
    context: tuple[int, ...] = ()
    stop: str | None = None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The end of a request that could not be answered; `code` is a key of errors.ERRORS."""

    code: str
    message: str


Event = TextDelta | ThinkingDelta | ToolCallDelta | Rendered | Embedded | Done | Failed
Terminal = Done | Failed


def merge_deltas(first: Event, second: Event) -> Event | None:
    """One event with the content of both when both are text, thinking or pieces of one tool call, else None."""
    if isinstance(first, TextDelta) and isinstance(second, TextDelta):
        return TextDelta(first.text + second.text, first.logprobs + second.logprobs)
    if isinstance(first, ThinkingDelta) and isinstance(second, ThinkingDelta):
        return ThinkingDelta(first.text + second.text, first.logprobs + second.logprobs)
    if isinstance(first, ToolCallDelta) and isinstance(second, ToolCallDelta) and not second.name:
        return msgspec.structs.replace(first, arguments=first.arguments + second.arguments)
    return None
