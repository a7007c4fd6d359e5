"""OpenAI's answers: events to chat.completion and text_completion objects, or server-sent events of their chunks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Candidate, Done, Event, TextDelta, ThinkingDelta, TokenLogprob, Usage
from .endpoint import Call

_ERROR_TYPES = {400: "invalid_request_error", 404: "not_found_error"}
_LAST = b"data: [DONE]\n\n"


class CompletionEncoder:
    """Answers of /v1/completions. One instance prints one answer, whose id and time all chunks share."""

    content_type = "application/json; charset=utf-8"
    stream_content_type = "text/event-stream"
    _id_prefix = "cmpl"
    _whole_object = _chunk_object = "text_completion"

    def __init__(self, call: Call, clock: Callable[[], float] = time.time) -> None:
        self._call = call
        self._head = {
            "id": f"{self._id_prefix}-{secrets.randbelow(1000)}",
            "created": int(clock()),
            "model": call.model,
        }
        self._is_first = True

    def chunk(self, event: Event) -> bytes:
        """Events of a stream: a chunk for a delta, those that end the answer for Done."""
        if isinstance(event, Done):
            return self._end(event)
        if not isinstance(event, TextDelta | ThinkingDelta):
            return b""
        choice = self._delta(event) | {"finish_reason": None}
        self._is_first = False
        return self._event([choice])

    def whole(self, events: Iterable[Event]) -> bytes:
        """One object with everything."""
        known = list(events)
        done = next(event for event in known if isinstance(event, Done))
        choice = self._message(known) | {"finish_reason": str(done.reason)}
        answer = self._object(self._whole_object, [choice]) | {"usage": _usage(done.usage)}
        return msgspec.json.encode(answer | ({"warnings": list(done.warnings)} if done.warnings else {}))

    def error(self, error: CorralError) -> bytes:
        """The last event of a stream that failed."""
        return b"data: " + encode_error(error) + b"\n\n"

    def _end(self, done: Done) -> bytes:
        ending = self._event([self._empty_delta() | {"finish_reason": str(done.reason)}], done.warnings)
        if self._call.include_usage:
            ending += _sse(self._object(self._chunk_object, []) | {"usage": _usage(done.usage)})
        return ending + _LAST

    def _event(self, choices: list[dict[str, Any]], warnings: tuple[str, ...] = ()) -> bytes:
        answer = self._object(self._chunk_object, choices)
        if self._call.include_usage:
            answer["usage"] = None
        if warnings:
            answer["warnings"] = list(warnings)
        return _sse(answer)

    def _object(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head | {"object": kind, "system_fingerprint": "fp_corral", "choices": choices}

    def _delta(self, event: TextDelta | ThinkingDelta) -> dict[str, Any]:
        return {"index": 0, "text": event.text, "logprobs": None}

    def _empty_delta(self) -> dict[str, Any]:
        return {"index": 0, "text": "", "logprobs": None}

    def _message(self, events: list[Event]) -> dict[str, Any]:
        return {"index": 0, "text": _text(events, TextDelta), "logprobs": None}


class ChatCompletionEncoder(CompletionEncoder):
    """Answers of /v1/chat/completions."""

    _id_prefix = "chatcmpl"
    _whole_object = "chat.completion"
    _chunk_object = "chat.completion.chunk"

    def _delta(self, event: TextDelta | ThinkingDelta) -> dict[str, Any]:
        role = {"role": "assistant"} if self._is_first else {}
        field = "reasoning" if isinstance(event, ThinkingDelta) else "content"
        return {"index": 0, "delta": role | {field: event.text}, "logprobs": self._logprobs([event])}

    def _empty_delta(self) -> dict[str, Any]:
        role = {"role": "assistant", "content": ""} if self._is_first else {}
        return {"index": 0, "delta": role, "logprobs": None}

    def _message(self, events: list[Event]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": _text(events, TextDelta)}
        thinking = _text(events, ThinkingDelta)
        if thinking:
            message["reasoning"] = thinking
        return {"index": 0, "message": message, "logprobs": self._logprobs(events)}

    def _logprobs(self, events: list[Event]) -> dict[str, Any] | None:
        if self._call.top_logprobs is None:
            return None
        deltas = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
        return {"content": [_logprob(entry) for delta in deltas for entry in delta.logprobs]}


def encode_error(error: CorralError) -> bytes:
    """An error object in OpenAI's form."""
    kind = _ERROR_TYPES.get(error.status, "api_error")
    return msgspec.json.encode({"error": {"message": error.message, "type": kind, "param": None, "code": None}})


def _sse(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _text(events: list[Event], kind: type[TextDelta | ThinkingDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _logprob(entry: TokenLogprob) -> dict[str, Any]:
    return _candidate(entry.chosen) | {"top_logprobs": [_candidate(candidate) for candidate in entry.top]}


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {"token": candidate.text, "logprob": candidate.logprob, "bytes": list(candidate.data)}
