"""Answers of /v1/messages: a message of content blocks, or named events that build one up (contract section 11)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Done, Event, FinishReason, Rendered, TextDelta, ThinkingDelta, ToolCallDelta, Usage
from .calls import CallGatherer
from .endpoint import Call, Stamp
from .openai_encoder import JSON, find_done, join_text, print_warnings
from .sse import CONTENT_TYPE, sse
from .whole_encoder import WholeEncoder

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_BYTES_PER_TOKEN = 4
# A block is all that comes of one kind in a row; of tool calls, each is one.
_Key = tuple[str, int]


class MessageDetails(msgspec.Struct, frozen=True):
    """Bytes of the prompt, for a first guess at its tokens, and whether the text of thinking is wanted."""

    num_bytes: int = 0
    hides_thinking: bool = False


class MessageEncoder:
    """Prints one message."""

    content_type = JSON
    stream_content_type = CONTENT_TYPE

    def __init__(self, call: Call, stamp: Stamp) -> None:
        assert isinstance(call.details, MessageDetails), "made by parse_messages"
        self._call = call
        self._details = call.details
        self._id = stamp.id
        self._is_started = False
        self._has_calls = False
        self._key: _Key | None = None
        self._num_blocks = 0

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """The events that begin, grow and end blocks, and for Done how the message ended."""
        del choice
        if isinstance(event, Done):
            return self._start() + self._end_block() + self._finish(event)
        key = _key(event)
        if key is None:
            return b""
        data = self._start() + (self._begin_block(key, event) if key != self._key else b"")
        delta = self._delta(event)
        return data + self._event("content_block_delta", index=self._num_blocks - 1, delta=delta) if delta else data

    def end(self) -> bytes:
        """The last event."""
        return self._event("message_stop")

    def ping(self) -> bytes:
        """A ping, after the beginning of the message."""
        return self._start() + self._event("ping")

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """The message with all its blocks."""
        events = choices[0]
        done = find_done(events)
        keyed = [(key, event) for event in events if (key := _key(event)) is not None]
        blocks = [
            self._whole_block(kind, [event for _, event in group]) for (kind, _), group in groupby(keyed, itemgetter(0))
        ]
        has_calls = any(block["type"] == "tool_use" for block in blocks)
        message = self._message(blocks, print_usage(done.usage)) | self._ending(done, has_calls)
        return msgspec.json.encode(message | print_warnings([done]))

    def error(self, error: CorralError) -> bytes:
        """The event that ends a stream that failed."""
        return sse(print_error(error, self._id), "error")

    def _start(self) -> bytes:
        if self._is_started:
            return b""
        self._is_started = True
        guess = Usage(max(1, self._details.num_bytes // _BYTES_PER_TOKEN))
        return self._event("message_start", message=self._message([], print_usage(guess)))

    def _begin_block(self, key: _Key, event: Event) -> bytes:
        ended = self._end_block()
        self._key = key
        self._num_blocks += 1
        block = _empty_block(event)
        self._has_calls = self._has_calls or block["type"] == "tool_use"
        return ended + self._event("content_block_start", index=self._num_blocks - 1, content_block=block)

    def _end_block(self) -> bytes:
        if self._key is None:
            return b""
        self._key = None
        return self._event("content_block_stop", index=self._num_blocks - 1)

    def _delta(self, event: Event) -> dict[str, Any] | None:
        if isinstance(event, TextDelta):
            return {"type": "text_delta", "text": event.text}
        if isinstance(event, ToolCallDelta):
            return {"type": "input_json_delta", "partial_json": event.arguments} if event.arguments else None
        if isinstance(event, ThinkingDelta) and not self._details.hides_thinking:
            return {"type": "thinking_delta", "thinking": event.text}
        return None

    def _finish(self, done: Done) -> bytes:
        ending = self._ending(done, self._has_calls)
        return self._event("message_delta", delta=ending, usage=print_usage(done.usage), **print_warnings([done]))

    def _whole_block(self, kind: str, events: Sequence[Event]) -> dict[str, Any]:
        if kind == "text":
            return {"type": "text", "text": join_text(events, TextDelta)}
        if kind == "thinking":
            thinking = "" if self._details.hides_thinking else join_text(events, ThinkingDelta)
            return {"type": "thinking", "thinking": thinking, "signature": ""}
        (call,) = CallGatherer.gather(events)
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}

    def _message(self, content: list[dict[str, Any]], usage: dict[str, int]) -> dict[str, Any]:
        return {
            "id": f"msg_{self._id}",
            "type": "message",
            "role": "assistant",
            "model": self._call.model,
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }

    def _ending(self, done: Done, has_calls: bool) -> dict[str, Any]:
        """Why the message ended. Stop strings of the model's own end a turn, as Anthropic's models have it."""
        if done.reason is FinishReason.LENGTH:
            return {"stop_reason": "max_tokens", "stop_sequence": None}
        if done.stop is not None and done.stop in self._call.options.get("stop", ()):
            return {"stop_reason": "stop_sequence", "stop_sequence": done.stop}
        return {"stop_reason": "tool_use" if has_calls else "end_turn", "stop_sequence": None}

    def _event(self, kind: str, **fields: Any) -> bytes:
        return sse({"type": kind} | fields, kind)


class CountEncoder(WholeEncoder):
    """The number of tokens that a prompt has."""

    def _answer(self, events: Sequence[Event]) -> Any:
        return {"input_tokens": sum(event.num_tokens for event in events if isinstance(event, Rendered))}


def encode_error(error: CorralError) -> bytes:
    """An error object in Anthropic's form, of a request that has no id yet."""
    return msgspec.json.encode(print_error(error, secrets.token_hex(12)))


def print_error(error: CorralError, request_id: str) -> dict[str, Any]:
    """An error in Anthropic's form, which tells its kind by the HTTP status."""
    kind = _ERROR_TYPES.get(error.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": f"req_{request_id}"}


def print_usage(usage: Usage) -> dict[str, int]:
    """Token counts. The prompt is counted whole and none of it as cached: clients add the three up, and here nobody
    pays less for a part of it.
    """
    return {
        "input_tokens": usage.prompt_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": usage.completion_tokens,
    }


def _key(event: Event) -> _Key | None:
    """Which block an event belongs to, where it has anything to show."""
    if isinstance(event, ToolCallDelta):
        return "tool_use", event.index
    if isinstance(event, TextDelta) and event.text:
        return "text", 0
    return ("thinking", 0) if isinstance(event, ThinkingDelta) and event.text else None


def _empty_block(event: Event) -> dict[str, Any]:
    if isinstance(event, ToolCallDelta):
        return {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}
    if isinstance(event, ThinkingDelta):
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}
