"""Ollama's answers: events to JSON objects, one a line when streamed. Zero counts and durations are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.durations import format_time
from ...core.errors import CorralError
from ...core.events import (
    Candidate,
    Done,
    Event,
    Rendered,
    TextDelta,
    ThinkingDelta,
    TokenLogprob,
    ToolCallDelta,
)
from .calls import CallGatherer, WholeCall
from .endpoint import Call, EmbedCall, Stamp
from .vectors import read_vectors

JSON = "application/json; charset=utf-8"
NDJSON = "application/x-ndjson"


class GenerateEncoder:
    """Answers of /api/generate."""

    content_type = JSON
    stream_content_type = NDJSON

    def __init__(self, call: Call, stamp: Stamp) -> None:
        self._call = call
        self._clock = stamp.clock
        self._calls = CallGatherer()

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """A line, or two where a tool call ends."""
        del choice
        if isinstance(event, ToolCallDelta):
            # A call is an object here, so it is sent when it is whole.
            return self._lines(self._calls.add(event))
        before = self._lines(self._calls.finish())
        match event:
            case TextDelta() | ThinkingDelta():
                answer = self._head() | self._content([event], []) | {"done": False} | _logprobs([event])
            case Done():
                answer = self._head() | self._content([], []) | self._tail(event)
            case Rendered():
                answer = self._head() | _debug_info(event)
            case _:
                return before
        return before + msgspec.json.encode(answer) + b"\n"

    def end(self) -> bytes:
        """Nothing: the last line is that of Done."""
        return b""

    def ping(self) -> bytes:
        """An object without text; a blank line would break clients."""
        return msgspec.json.encode(self._head() | self._content([], []) | {"done": False}) + b"\n"

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """One object with everything."""
        events = choices[0]
        rendered = [event for event in events if isinstance(event, Rendered)]
        if rendered:
            return msgspec.json.encode(self._head() | _debug_info(rendered[0]))
        done = next(event for event in events if isinstance(event, Done))
        content = self._content(events, CallGatherer.gather(events))
        return msgspec.json.encode(self._head() | content | self._tail(done) | _logprobs(events))

    def error(self, error: CorralError) -> bytes:
        """The last line of a stream that failed."""
        return encode_error(error) + b"\n"

    def _lines(self, calls: Sequence[WholeCall]) -> bytes:
        return b"".join(
            msgspec.json.encode(self._head() | self._content([], [call]) | {"done": False}) + b"\n" for call in calls
        )

    def _content(self, events: Sequence[Event], calls: Sequence[WholeCall]) -> dict[str, Any]:
        thinking = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
        answer: dict[str, Any] = {"response": "".join(event.text for event in events if isinstance(event, TextDelta))}
        if thinking:
            answer["thinking"] = thinking
        if calls:
            answer["tool_calls"] = [_tool_call(call) for call in calls]
        return answer

    def _head(self) -> dict[str, Any]:
        return {"model": self._call.model, "created_at": format_time(0, self._clock())}

    def _tail(self, done: Done) -> dict[str, Any]:
        counts = {
            "context": list(done.context),
            "total_duration": done.timings.total_ns,
            "load_duration": done.timings.load_ns,
            "prompt_eval_count": done.usage.prompt_tokens,
            "prompt_eval_duration": done.timings.prompt_ns,
            "eval_count": done.usage.completion_tokens,
            "eval_duration": done.timings.completion_ns,
            "warnings": list(done.warnings),
        }
        return {"done": True, "done_reason": str(done.reason)} | {key: value for key, value in counts.items() if value}


class ChatEncoder(GenerateEncoder):
    """Answers of /api/chat: a message in place of `response`, in every chunk."""

    def _content(self, events: Sequence[Event], calls: Sequence[WholeCall]) -> dict[str, Any]:
        content = super()._content(events, calls)
        message = {"role": "assistant", "content": content.pop("response")}
        return {"message": message | content}


class EmbedEncoder:
    """Answers of /api/embed."""

    content_type = JSON
    stream_content_type = NDJSON

    def __init__(self, call: EmbedCall, stamp: Stamp) -> None:
        del stamp
        self._call = call

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """Nothing: vectors are not streamed."""
        del event, choice
        return b""

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def ping(self) -> bytes:
        """Nothing."""
        return b""

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """All vectors in one object."""
        done = next(event for event in choices[0] if isinstance(event, Done))
        counts = {
            "total_duration": done.timings.total_ns,
            "load_duration": done.timings.load_ns,
            "prompt_eval_count": done.usage.prompt_tokens,
            "warnings": list(done.warnings),
        }
        answer: dict[str, Any] = {"model": self._call.model, "embeddings": [list(v) for v in read_vectors(choices[0])]}
        return msgspec.json.encode(answer | {key: value for key, value in counts.items() if value})

    def error(self, error: CorralError) -> bytes:
        """As before the first byte."""
        return encode_error(error)


class EmbeddingsEncoder(EmbedEncoder):
    """Answers of /api/embeddings: the one vector."""

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """The vector, or an empty list where there was no text."""
        found = read_vectors(choices[0])
        return msgspec.json.encode({"embedding": list(found[0]) if found else []})


def encode_error(error: CorralError) -> bytes:
    """An error object."""
    return msgspec.json.encode({"error": error.message})


def _tool_call(call: WholeCall) -> dict[str, Any]:
    function = {"index": call.index, "name": call.name, "arguments": call.arguments}
    return {"id": call.id, "function": function}


def _debug_info(event: Rendered) -> dict[str, Any]:
    return {"_debug_info": {"rendered_template": event.text, "prompt_token_count": event.num_tokens}}


def _logprobs(events: Sequence[Event]) -> dict[str, Any]:
    entries = [entry for event in events if isinstance(event, TextDelta | ThinkingDelta) for entry in event.logprobs]
    return {"logprobs": [_logprob(entry) for entry in entries]} if entries else {}


def _logprob(entry: TokenLogprob) -> dict[str, Any]:
    top = [_candidate(candidate) for candidate in entry.top]
    return _candidate(entry.chosen) | ({"top_logprobs": top} if top else {})


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {"token": candidate.text, "logprob": candidate.logprob, "bytes": list(candidate.data)}
