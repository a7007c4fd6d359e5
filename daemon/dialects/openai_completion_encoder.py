"""Answers of /v1/completions, with log-probabilities in their older form: lists side by side."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

from ...core.events import Candidate, Done, Event, TextDelta, ThinkingDelta, TokenLogprob
from .endpoint import Call, Stamp
from .openai_encoder import AnswerEncoder, find_done, join_text


class CompletionEncoder(AnswerEncoder):
    """Text completions, whole and in chunks. Thinking is no part of the text and comes as `reasoning`."""

    _id_prefix = "cmpl"
    _whole_object = _chunk_object = "text_completion"

    def __init__(self, call: Call, stamp: Stamp) -> None:
        super().__init__(call, stamp)
        self._tables: dict[int, LogprobTable] = {}

    def _delta(self, event: Event, choice: int) -> dict[str, Any]:
        if not isinstance(event, TextDelta | ThinkingDelta):
            return {}
        logprobs = self._logprobs([event], self._table(choice))
        if isinstance(event, ThinkingDelta):
            return {"text": "", "reasoning": event.text, "logprobs": logprobs}
        return {"text": event.text, "logprobs": logprobs}

    def _finish(self, done: Done, choice: int) -> list[dict[str, Any]]:
        del choice
        return [{"text": "", "logprobs": None, "finish_reason": str(done.reason)}]

    def _message(self, events: Sequence[Event]) -> dict[str, Any]:
        thinking = join_text(events, ThinkingDelta)
        return {
            "text": join_text(events, TextDelta),
            **({"reasoning": thinking} if thinking else {}),
            "logprobs": self._logprobs(events, LogprobTable(bool(self._call.top_logprobs))),
            "finish_reason": str(find_done(events).reason),
        }

    def _table(self, choice: int) -> LogprobTable:
        if choice not in self._tables:
            self._tables[choice] = LogprobTable(bool(self._call.top_logprobs))
        return self._tables[choice]

    def _logprobs(self, events: Sequence[Event], table: LogprobTable) -> dict[str, Any] | None:
        if self._call.top_logprobs is None:
            return None
        deltas = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
        return table.take([entry for delta in deltas for entry in delta.logprobs])


class LogprobTable:
    """Log-probabilities of one choice, piece by piece. Offsets count characters from the start of the choice's text."""

    def __init__(self, has_alternatives: bool) -> None:
        self._has_alternatives = has_alternatives
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def take(self, entries: Sequence[TokenLogprob]) -> dict[str, Any]:
        """The lists for these tokens. `top_logprobs` is null where no alternatives were asked for."""
        return {
            "tokens": [_label(entry.chosen) for entry in entries],
            "token_logprobs": [entry.chosen.logprob for entry in entries],
            "top_logprobs": [_alternatives(entry) for entry in entries] if self._has_alternatives else None,
            "text_offset": [self._advance(entry.chosen.data) for entry in entries],
        }

    def _advance(self, data: bytes) -> int:
        # A character that several tokens share begins where the first of them does.
        start = self._offset
        self._offset += len(self._decoder.decode(data))
        return start


def _alternatives(entry: TokenLogprob) -> dict[str, float | None] | None:
    return {_label(candidate): candidate.logprob for candidate in entry.top} or None


def _label(candidate: Candidate) -> str:
    """A token's text, or its bytes in words where they are part of a character: tokens are keys, and must differ."""
    try:
        candidate.data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in candidate.data)
    return candidate.text
