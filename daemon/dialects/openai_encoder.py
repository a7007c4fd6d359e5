"""What OpenAI's answers have in common: heads, usage, the frame of a stream, errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Done, Event
from .endpoint import Call, Stamp
from .sse import CONTENT_TYPE, PING, sse

JSON = "application/json; charset=utf-8"
_ERROR_TYPES = {400: "invalid_request_error", 404: "not_found_error"}
_LAST = b"data: [DONE]\n\n"
# What an Ollama server says; clients compare it from answer to answer, and ours do not change either.
_FINGERPRINT = "fp_ollama"


class AnswerEncoder:
    """The frame of chat completions and completions. An instance prints one answer; all chunks share its id and time.

    What is inside a choice is the subclass's: `_delta` for a piece of a stream, `_finish` for its end, `_message` for
    all of it.
    """

    content_type = JSON
    stream_content_type = CONTENT_TYPE
    _id_prefix = ""
    _whole_object = ""
    _chunk_object = ""

    def __init__(self, call: Call, stamp: Stamp) -> None:
        self._call = call
        self._head = {
            "id": f"{self._id_prefix}-{stamp.id}",
            "created": stamp.clock() // 1_000_000_000,
            "model": call.model,
        }
        self._done: dict[int, Done] = {}

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """The chunks of an event: one for a delta, for Done what ends its choice."""
        if isinstance(event, Done):
            self._done[choice] = event
            return b"".join(self._chunk(part, choice, event.warnings) for part in self._finish(event, choice))
        delta = self._delta(event, choice)
        return self._chunk(delta | {"finish_reason": None}, choice) if delta else b""

    def end(self) -> bytes:
        """Usage where it was asked for, and the mark of the end."""
        if not self._call.include_usage:
            return _LAST
        done = [self._done[choice] for choice in sorted(self._done)]
        usage = self._object(self._chunk_object, []) | {"usage": print_usage(done, self._call.num_choices)}
        return sse(usage) + _LAST

    def ping(self) -> bytes:
        """A comment."""
        return PING

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """One object with everything."""
        done = [find_done(events) for events in choices]
        printed = [{"index": index} | self._message(events) for index, events in enumerate(choices)]
        usage = print_usage(done, self._call.num_choices)
        answer = self._object(self._whole_object, printed) | {"usage": usage}
        return msgspec.json.encode(answer | print_warnings(done))

    def error(self, error: CorralError) -> bytes:
        """The last event of a stream that failed."""
        return b"data: " + encode_error(error) + b"\n\n"

    def _delta(self, event: Event, choice: int) -> dict[str, Any]:
        """A choice of a chunk without index and finish_reason; nothing for events that are not shown."""
        raise NotImplementedError

    def _finish(self, done: Done, choice: int) -> list[dict[str, Any]]:
        """Choices, each of a chunk of its own, the last with the finish_reason."""
        raise NotImplementedError

    def _message(self, events: Sequence[Event]) -> dict[str, Any]:
        """A whole choice without its index."""
        raise NotImplementedError

    def _chunk(self, part: dict[str, Any], choice: int, warnings: Sequence[str] = ()) -> bytes:
        answer = self._object(self._chunk_object, [{"index": choice} | part])
        if self._call.include_usage:
            answer["usage"] = None
        if warnings and part["finish_reason"] is not None:
            answer["warnings"] = list(warnings)
        return sse(answer)

    def _object(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head | {"object": kind, "system_fingerprint": _FINGERPRINT, "choices": choices}


def encode_error(error: CorralError) -> bytes:
    """An error object in OpenAI's form."""
    return print_error(error.message, error.status)


def print_error(message: str, status: int) -> bytes:
    """An error object of an HTTP status."""
    kind = _ERROR_TYPES.get(status, "api_error")
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": None, "code": None}})


def find_done(events: Sequence[Event]) -> Done:
    """The end of an answer, which each has."""
    return next(event for event in events if isinstance(event, Done))


def print_usage(done: Sequence[Done], num_choices: int) -> dict[str, Any]:
    """Token counts of all choices; a prompt that several choices answer counts once."""
    prompts = [end.usage for end in done[::num_choices]]
    prompt_tokens = sum(usage.prompt_tokens for usage in prompts)
    completion_tokens = sum(end.usage.completion_tokens for end in done)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(usage.cached_tokens for usage in prompts)},
    }


def print_warnings(done: Iterable[Done]) -> dict[str, Any]:
    """`warnings`, each once, where there are any."""
    warnings = list(dict.fromkeys(warning for end in done for warning in end.warnings))
    return {"warnings": warnings} if warnings else {}


def join_text(events: Iterable[Event], kind: type[Any]) -> str:
    """The texts of all events of a kind."""
    return "".join(event.text for event in events if isinstance(event, kind))
