"""Ollama's answers: events to JSON objects, one a line when streamed. Zero counts and durations are left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ...core.durations import format_time
from ...core.errors import CorralError
from ...core.events import Candidate, Done, Event, Rendered, TextDelta, ThinkingDelta, TokenLogprob
from .endpoint import Call


class GenerateEncoder:
    """Answers of /api/generate. `clock` gives Unix nanoseconds."""

    content_type = "application/json; charset=utf-8"
    stream_content_type = "application/x-ndjson"

    def __init__(self, call: Call, clock: Callable[[], int] = time.time_ns) -> None:
        self._call = call
        self._clock = clock

    def chunk(self, event: Event) -> bytes:
        """One line of a stream."""
        match event:
            case TextDelta() | ThinkingDelta():
                answer = self._head() | self._content([event]) | {"done": False} | _logprobs([event])
            case Done():
                answer = self._head() | self._content([]) | self._tail(event)
            case Rendered():
                answer = self._head() | _debug_info(event)
            case _:
                return b""
        return msgspec.json.encode(answer) + b"\n"

    def whole(self, events: Iterable[Event]) -> bytes:
        """One object with everything."""
        known = list(events)
        rendered = [event for event in known if isinstance(event, Rendered)]
        if rendered:
            return msgspec.json.encode(self._head() | _debug_info(rendered[0]))
        done = next(event for event in known if isinstance(event, Done))
        return msgspec.json.encode(self._head() | self._content(known) | self._tail(done) | _logprobs(known))

    def error(self, error: CorralError) -> bytes:
        """The last line of a stream that failed."""
        return encode_error(error) + b"\n"

    def _content(self, events: list[Event]) -> dict[str, Any]:
        thinking = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
        answer = {"response": "".join(event.text for event in events if isinstance(event, TextDelta))}
        return answer | ({"thinking": thinking} if thinking else {})

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

    def _content(self, events: list[Event]) -> dict[str, Any]:
        content = super()._content(events)
        message = {"role": "assistant", "content": content.pop("response")}
        return {"message": message | content}


def encode_error(error: CorralError) -> bytes:
    """An error object."""
    return msgspec.json.encode({"error": error.message})


def _debug_info(event: Rendered) -> dict[str, Any]:
    return {"_debug_info": {"rendered_template": event.text, "prompt_token_count": event.num_tokens}}


def _logprobs(events: list[Event]) -> dict[str, Any]:
    entries = [entry for event in events if isinstance(event, TextDelta | ThinkingDelta) for entry in event.logprobs]
    return {"logprobs": [_logprob(entry) for entry in entries]} if entries else {}


def _logprob(entry: TokenLogprob) -> dict[str, Any]:
    top = [_candidate(candidate) for candidate in entry.top]
    return _candidate(entry.chosen) | ({"top_logprobs": top} if top else {})


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {"token": candidate.text, "logprob": candidate.logprob, "bytes": list(candidate.data)}
