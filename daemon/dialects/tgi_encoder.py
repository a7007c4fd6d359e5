"""Answers in TGI's form: the text with details of each token, or an event a token, the last with all of it.

The end token is counted but not listed: events tell of tokens that are text.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Candidate, Done, Event, FinishReason, TextDelta, TokenLogprob
from .endpoint import Call, Stamp
from .openai_encoder import JSON, find_done, join_text, print_warnings
from .sse import CONTENT_TYPE, PING, sse

# TGI's own statuses and types, by our statuses; all others are 500 and "generation".
_STATUSES = {400: 422, 404: 404, 503: 429}
_ERROR_TYPES = {400: "validation", 404: "not_found", 503: "overloaded"}
# The number of a token that is not one of the model's.
_NO_TOKEN = -1


class GenerateDetails(msgspec.Struct, frozen=True):
    """What is wanted: details, the prompt before the text, a list around it, how many of the likeliest tokens."""

    inputs: str
    has_details: bool = False
    has_full_text: bool = False
    is_list: bool = False
    num_top: int = 0
    seed: int | None = None


class TokenPrinter:
    """Prints tokens in the order in which they come: characters that are split over several go to the last of them."""

    def __init__(self, num_top: int) -> None:
        self._num_top = num_top
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def print(self, entry: TokenLogprob) -> dict[str, Any]:
        """A token as it is streamed, with the likeliest in its place where they are wanted."""
        printed: dict[str, Any] = {"token": _token(entry.chosen, self._decoder.decode(entry.chosen.data))}
        if self._num_top:
            printed["top_tokens"] = [_token(candidate, candidate.text) for candidate in entry.top]
        return printed


class GenerateEncoder:
    """Prints one answer. A token of a stream goes out when the next one is there: the last carries the whole text."""

    content_type = JSON
    stream_content_type = CONTENT_TYPE

    def __init__(self, call: Call, stamp: Stamp) -> None:
        del stamp
        assert isinstance(call.details, GenerateDetails), "made by the functions of tgi.py"
        self._details = call.details
        self._printer = TokenPrinter(call.details.num_top)
        self._texts: list[str] = []
        self._shown = ""
        self._held: dict[str, Any] | None = None
        self._num_sent = 0

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """The tokens before the last one of a piece of text; for Done the last of all."""
        del choice
        if isinstance(event, Done):
            return self._finish(event)
        if not isinstance(event, TextDelta):
            return b""
        self._texts.append(event.text)
        return b"".join(self._add(self._printer.print(entry)) for entry in event.logprobs)

    def end(self) -> bytes:
        """Nothing: the last token says so."""
        return b""

    def ping(self) -> bytes:
        """A comment."""
        return PING

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """The text, with details where they are wanted."""
        events = choices[0]
        done = find_done(events)
        entries = [entry for event in events if isinstance(event, TextDelta) for entry in event.logprobs]
        text = join_text(events, TextDelta)
        num_prefill = 0
        if self._has_prefill(entries):
            # The answer begins with the prompt, whose tokens are told of as well.
            text = text.removeprefix(self._details.inputs)
            num_prefill = done.usage.prompt_tokens
        answer = {"generated_text": self._full(text)} | print_warnings([done])
        if self._details.has_details:
            answer["details"] = self._print_details(done, entries[:num_prefill], entries[num_prefill:])
        return msgspec.json.encode([answer] if self._details.is_list else answer)

    def error(self, error: CorralError) -> bytes:
        """The event that ends a stream that failed."""
        return b"data: " + encode_error(error) + b"\n\n"

    def _add(self, printed: dict[str, Any]) -> bytes:
        self._shown += printed["token"]["text"]
        before, self._held = self._held, printed
        return self._event(before) if before else b""

    def _finish(self, done: Done) -> bytes:
        text = "".join(self._texts)
        rest = text[len(self._shown) :] if text.startswith(self._shown) else ""
        data = b""
        if self._held is None or rest:
            # A token that a stop string cut is known by its text only, and an answer may have no token at all.
            token = {"id": _NO_TOKEN, "text": rest, "logprob": None, "special": not rest}
            data = self._add({"token": token} | ({"top_tokens": []} if self._details.num_top else {}))
        assert self._held is not None, "just added where there was none"
        return data + self._event(self._held, self._full(text), self._ending(done), print_warnings([done]))

    def _event(
        self,
        printed: dict[str, Any],
        text: str | None = None,
        details: dict[str, Any] | None = None,
        warnings: dict[str, Any] | None = None,
    ) -> bytes:
        self._num_sent += 1
        answer = {"index": self._num_sent} | printed | {"generated_text": text, "details": details}
        return sse(answer | (warnings or {}))

    def _full(self, text: str) -> str:
        return self._details.inputs + text if self._details.has_full_text else text

    def _ending(self, done: Done) -> dict[str, Any]:
        return {
            "finish_reason": _finish_reason(done),
            "generated_tokens": done.usage.completion_tokens,
            "input_length": done.usage.prompt_tokens,
            "seed": self._details.seed,
        }

    def _print_details(
        self, done: Done, prompt: Sequence[TokenLogprob], answer: Sequence[TokenLogprob]
    ) -> dict[str, Any]:
        prefill = [_prompt_token(entry.chosen) for entry in prompt]
        printed = [self._printer.print(entry) for entry in answer]
        details = self._ending(done) | {"prefill": prefill, "tokens": [row["token"] for row in printed]}
        if self._details.num_top:
            details["top_tokens"] = [row["top_tokens"] for row in printed]
        return details

    def _has_prefill(self, entries: Sequence[TokenLogprob]) -> bool:
        # Nothing foretells the first token of a prompt.
        return bool(entries) and entries[0].chosen.logprob is None


def encode_error(error: CorralError) -> bytes:
    """An error in TGI's form."""
    kind = _ERROR_TYPES.get(error.status, "generation")
    return msgspec.json.encode({"error": error.message, "error_type": kind})


def find_status(error: CorralError) -> int:
    """TGI's HTTP status of an error."""
    return _STATUSES.get(error.status, 500)


def _token(candidate: Candidate, text: str) -> dict[str, Any]:
    return {"id": candidate.token, "text": text, "logprob": candidate.logprob, "special": False}


def _prompt_token(candidate: Candidate) -> dict[str, Any]:
    return {"id": candidate.token, "text": candidate.text, "logprob": candidate.logprob}


def _finish_reason(done: Done) -> str:
    if done.reason is FinishReason.LENGTH:
        return "length"
    return "stop_sequence" if done.stop is not None else "eos_token"
