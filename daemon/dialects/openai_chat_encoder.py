"""Answers of /v1/chat/completions: messages with thinking and tool calls, or deltas of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.events import Candidate, Done, Event, FinishReason, TextDelta, ThinkingDelta, TokenLogprob, ToolCallDelta
from .calls import CallGatherer, WholeCall
from .endpoint import Call, Stamp
from .openai_encoder import AnswerEncoder, find_done, join_text


class ChatDetails(msgspec.Struct, frozen=True):
    """How a client wants its answer. One that sent `functions` reads `function_call` in place of `tool_calls`."""

    has_legacy_calls: bool = False


class ChatCompletionEncoder(AnswerEncoder):
    """Chat completions, whole and in chunks."""

    _id_prefix = "chatcmpl"
    _whole_object = "chat.completion"
    _chunk_object = "chat.completion.chunk"

    def __init__(self, call: Call, stamp: Stamp) -> None:
        super().__init__(call, stamp)
        self._is_legacy = isinstance(call.details, ChatDetails) and call.details.has_legacy_calls
        self._started: set[int] = set()
        self._calling: set[int] = set()

    def _delta(self, event: Event, choice: int) -> dict[str, Any]:
        if not isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            return {}
        delta = self._begin(choice)
        if isinstance(event, ToolCallDelta):
            self._calling.add(choice)
            delta |= self._call_piece(event)
        elif isinstance(event, ThinkingDelta):
            delta |= _thinking(event.text)
        else:
            delta["content"] = event.text
        return {"delta": delta, "logprobs": self._logprobs([event])}

    def _finish(self, done: Done, choice: int) -> list[dict[str, Any]]:
        reason = self._reason(done, choice in self._calling)
        ending: dict[str, Any] = {"delta": {}, "logprobs": None, "finish_reason": reason}
        if choice in self._started:
            return [ending]
        opening = {"delta": self._begin(choice) | {"content": ""}, "logprobs": None, "finish_reason": None}
        return [opening, ending]

    def _message(self, events: Sequence[Event]) -> dict[str, Any]:
        calls = CallGatherer.gather(events)
        text = join_text(events, TextDelta)
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
        thinking = join_text(events, ThinkingDelta)
        if thinking:
            message |= _thinking(thinking)
        if calls and self._is_legacy:
            message["function_call"] = {"name": calls[0].name, "arguments": calls[0].text}
        elif calls:
            message["tool_calls"] = [_whole_call(call) for call in calls]
        reason = self._reason(find_done(events), bool(calls))
        return {"message": message, "logprobs": self._logprobs(events), "finish_reason": reason}

    def _begin(self, choice: int) -> dict[str, Any]:
        if choice in self._started:
            return {}
        self._started.add(choice)
        return {"role": "assistant"}

    def _call_piece(self, event: ToolCallDelta) -> dict[str, Any]:
        function = ({"name": event.name} if event.name else {}) | {"arguments": event.arguments}
        if self._is_legacy:
            return {"function_call": function}
        head = {"id": event.id, "type": "function"} if event.id else {}
        return {"tool_calls": [{"index": event.index} | head | {"function": function}]}

    def _reason(self, done: Done, has_calls: bool) -> str:
        if has_calls and done.reason is FinishReason.STOP:
            return "function_call" if self._is_legacy else "tool_calls"
        return str(done.reason)

    def _logprobs(self, events: Sequence[Event]) -> dict[str, Any] | None:
        if self._call.top_logprobs is None:
            return None
        deltas = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
        return {"content": [print_logprob(entry) for delta in deltas for entry in delta.logprobs]}


def print_logprob(entry: TokenLogprob) -> dict[str, Any]:
    """A token with its log-probability and the likeliest in its place."""
    return _candidate(entry.chosen) | {"top_logprobs": [_candidate(candidate) for candidate in entry.top]}


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {"token": candidate.text, "logprob": candidate.logprob, "bytes": list(candidate.data)}


def _thinking(text: str) -> dict[str, Any]:
    # Ollama and vLLM call it `reasoning`; LiteLLM, LangChain and DeepSeek's clients read the other name.
    return {"reasoning": text, "reasoning_content": text}


def _whole_call(call: WholeCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
