"""Answers in the form of llama.cpp's server: objects with the text so far and why it ended, or events of its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Candidate, Done, Event, FinishReason, TextDelta, Timings, TokenLogprob, Usage
from ...core.types import InfillPrompt, TextPrompt, TokensPrompt
from .endpoint import Call, Stamp
from .openai_encoder import JSON, find_done, join_text, print_warnings
from .sse import CONTENT_TYPE, PING, sse

_ERROR_TYPES = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    503: "unavailable_error",
}
_NS_PER_MS = 1e6


class CompletionDetails(msgspec.Struct, frozen=True):
    """How many of the likeliest tokens are wanted in each place, and whether the numbers of tokens are."""

    num_probs: int = 0
    wants_tokens: bool = False


class CompletionEncoder:
    """Prints completions: one object, or a list where there are several prompts."""

    content_type = JSON
    stream_content_type = CONTENT_TYPE

    def __init__(self, call: Call, stamp: Stamp) -> None:
        del stamp
        assert isinstance(call.details, CompletionDetails), "made by parse_completion or parse_infill"
        self._call = call
        self._details = call.details

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """A piece of text, or the end of it."""
        if isinstance(event, Done):
            return sse(self._end(event, choice, "", []))
        if not isinstance(event, TextDelta):
            return b""
        piece = {"index": choice, "content": event.text, "tokens": self._tokens([event]), "stop": False}
        return sse(piece | self._probabilities([event]))

    def end(self) -> bytes:
        """Nothing: the last event of a completion says so."""
        return b""

    def ping(self) -> bytes:
        """A comment."""
        return PING

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """Everything."""
        answers = [
            self._end(find_done(events), index, join_text(events, TextDelta), events)
            for index, events in enumerate(choices)
        ]
        return msgspec.json.encode(answers if len(answers) > 1 else answers[0])

    def error(self, error: CorralError) -> bytes:
        """The event that ends a stream that failed."""
        return b"data: " + encode_error(error) + b"\n\n"

    def _end(self, done: Done, index: int, text: str, events: Sequence[Event]) -> dict[str, Any]:
        answer = {
            "index": index,
            "content": text,
            "tokens": self._tokens(events),
            "stop": True,
            "model": self._call.model,
            "tokens_predicted": done.usage.completion_tokens,
            "tokens_evaluated": done.usage.prompt_tokens,
            "tokens_cached": done.usage.cached_tokens,
            "generation_settings": self._call.options,
            "prompt": self._prompt(index),
            "stop_type": _stop_type(done),
            "stopping_word": done.stop or "",
            "timings": print_timings(done.usage, done.timings),
        }
        return answer | self._probabilities(events) | print_warnings([done])

    def _prompt(self, index: int) -> str:
        prompt = self._call.prompts[index]
        if isinstance(prompt, InfillPrompt):
            return prompt.prefix
        assert isinstance(prompt, TextPrompt | TokensPrompt), "made by parse_completion"
        return prompt.text if isinstance(prompt, TextPrompt) else ""

    def _tokens(self, events: Sequence[Event]) -> list[int]:
        return [entry.chosen.token for entry in _entries(events)] if self._details.wants_tokens else []

    def _probabilities(self, events: Sequence[Event]) -> dict[str, Any]:
        entries = _entries(events)
        if not self._details.num_probs or not entries:
            return {}
        rows = [_candidate(entry.chosen) | {"top_logprobs": list(map(_candidate, entry.top))} for entry in entries]
        return {"completion_probabilities": rows}


def encode_error(error: CorralError) -> bytes:
    """An error object in the form of llama.cpp's server."""
    kind = "exceed_context_size_error" if error.code == "context_exceeded" else _ERROR_TYPES.get(error.status)
    row = {"code": error.status, "message": error.message, "type": kind or "server_error"}
    return msgspec.json.encode({"error": row})


def print_timings(usage: Usage, timings: Timings) -> dict[str, Any]:
    """Counts, milliseconds and speeds of prompt and answer; of the prompt, only what was evaluated now counts."""
    evaluated = usage.prompt_tokens - usage.cached_tokens
    return {
        "cache_n": usage.cached_tokens,
        **_speed("prompt", evaluated, timings.prompt_ns / _NS_PER_MS),
        **_speed("predicted", usage.completion_tokens, timings.completion_ns / _NS_PER_MS),
        **(
            {"draft_n": usage.drafted_tokens, "draft_n_accepted": usage.accepted_tokens} if usage.drafted_tokens else {}
        ),
    }


def _speed(name: str, num_tokens: int, elapsed_ms: float) -> dict[str, Any]:
    return {
        f"{name}_n": num_tokens,
        f"{name}_ms": elapsed_ms,
        f"{name}_per_token_ms": elapsed_ms / num_tokens if num_tokens else 0.0,
        f"{name}_per_second": 1000 * num_tokens / elapsed_ms if elapsed_ms else 0.0,
    }


def _stop_type(done: Done) -> str:
    if done.reason is FinishReason.LENGTH:
        return "limit"
    return "word" if done.stop is not None else "eos"


def _entries(events: Sequence[Event]) -> list[TokenLogprob]:
    return [entry for event in events if isinstance(event, TextDelta) for entry in event.logprobs]


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "id": candidate.token,
        "token": candidate.text,
        "bytes": list(candidate.data),
        "logprob": candidate.logprob,
    }
