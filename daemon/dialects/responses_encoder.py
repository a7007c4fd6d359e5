"""Answers of /v1/responses: response objects, or numbered events that build one up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.errors import CorralError
from ...core.events import Done, Event, FinishReason, TextDelta, Usage
from .endpoint import Call, Stamp
from .openai_chat_encoder import print_logprob
from .openai_encoder import JSON, find_done, print_warnings
from .responses_bodies import ResponseBody
from .responses_output import Item, Output
from .sse import CONTENT_TYPE, PING, sse

ID_PREFIX = "resp_"


class ResponseEncoder:
    """Prints one answer. The last event of a stream comes with `end`: by then the answer is kept under its id."""

    content_type = JSON
    stream_content_type = CONTENT_TYPE

    def __init__(self, call: Call, stamp: Stamp) -> None:
        assert isinstance(call.details, ResponseBody), "made by parse_response"
        self._call = call
        self._body = call.details
        self._id = stamp.id
        self._created = stamp.clock() // 1_000_000_000
        self._output = Output(stamp.id)
        self._done = Done(FinishReason.STOP)
        self._num_sent = 0

    def chunk(self, event: Event, choice: int = 0) -> bytes:
        """The events that announce, grow and end items."""
        del choice
        if isinstance(event, Done):
            self._done = event
            begun, ended = self._output.finish()
            opening = self._start() + (self._begin(begun) if begun else b"")
            return opening + self._finish(ended, _status(event))
        step = self._output.take(event)
        if step is None:
            return b""
        data = self._start()
        data += self._finish(step.ended, "completed") if step.ended else b""
        data += self._begin(step.grown) if step.is_new else b""
        extra = {"logprobs": [print_logprob(entry) for entry in event.logprobs]} if isinstance(event, TextDelta) else {}
        return data + self._event(_DELTAS[step.grown.kind], **_place(step.grown), delta=step.new, **extra)

    def end(self) -> bytes:
        """The whole answer, once more."""
        status = _status(self._done)
        return self._event(f"response.{status}", response=self._print(self._output, self._done))

    def ping(self) -> bytes:
        """The first events where none was sent yet, then comments."""
        return self._start() or PING

    def whole(self, choices: Sequence[Sequence[Event]]) -> bytes:
        """One response object."""
        output = Output(self._id)
        for event in choices[0]:
            output.take(event)
        output.finish()
        return msgspec.json.encode(self._print(output, find_done(choices[0])))

    def error(self, error: CorralError) -> bytes:
        """The event that ends a stream that failed."""
        code = "invalid_prompt" if error.status == 400 else "server_error"
        failed = self._head("failed") | {"error": {"code": code, "message": error.message}}
        return self._start() + self._event("response.failed", response=failed)

    def _start(self) -> bytes:
        if self._num_sent:
            return b""
        head = self._head("in_progress")
        return self._event("response.created", response=head) + self._event("response.in_progress", response=head)

    def _begin(self, item: Item) -> bytes:
        added = self._event("response.output_item.added", output_index=item.index, item=item.print("in_progress"))
        if item.kind == "function_call":
            return added
        kind = f"response.{_PARTS[item.kind]}.added"
        return added + self._event(kind, **_place(item), part=item.part(is_empty=True))

    def _finish(self, item: Item, status: str) -> bytes:
        printed = item.print(status)
        if item.kind == "function_call":
            name, arguments = printed["name"], item.text
            ended = self._event("response.function_call_arguments.done", **_place(item), name=name, arguments=arguments)
        else:
            part = item.part()
            extra = {"logprobs": part["logprobs"]} if item.kind == "message" else {}
            ended = self._event(f"{_TEXTS[item.kind]}.done", **_place(item), text=item.text, **extra)
            ended += self._event(f"response.{_PARTS[item.kind]}.done", **_place(item), part=part)
        return ended + self._event("response.output_item.done", output_index=item.index, item=printed)

    def _event(self, kind: str, **fields: Any) -> bytes:
        number = self._num_sent
        self._num_sent += 1
        return sse({"type": kind, "sequence_number": number} | fields, kind)

    def _print(self, output: Output, done: Done) -> dict[str, Any]:
        status = _status(done)
        cut = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
        last = len(output.items) - 1
        items = [item.print(status if item.index == last else "completed") for item in output.items]
        printed = self._head(status) | cut | {"output": items, "usage": _usage(done.usage)}
        return printed | print_warnings([done])

    def _head(self, status: str) -> dict[str, Any]:
        """What the client asked for, said again, around an output that is empty yet."""
        body, options = self._body, self._call.options
        reasoning = body.reasoning
        return {
            "id": f"{ID_PREFIX}{self._id}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "max_tool_calls": None,
            "model": self._call.model,
            "output": [],
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": body.previous_response_id,
            "reasoning": {"effort": reasoning and reasoning.effort, "summary": reasoning and reasoning.summary},
            "store": self._call.store,
            "temperature": options.get("temperature"),
            "text": {"format": (body.text and body.text.format) or {"type": "text"}},
            "tool_choice": body.tool_choice or "auto",
            "tools": body.tools or [],
            "top_logprobs": self._call.top_logprobs or 0,
            "top_p": options.get("top_p"),
            "truncation": "auto" if self._call.truncate else "disabled",
            "usage": None,
            "user": body.user,
            "metadata": body.metadata or {},
        }


_PARTS = {"message": "content_part", "reasoning": "reasoning_summary_part"}
_TEXTS = {"message": "response.output_text", "reasoning": "response.reasoning_summary_text"}
_DELTAS = {
    **{kind: f"{name}.delta" for kind, name in _TEXTS.items()},
    "function_call": "response.function_call_arguments.delta",
}


_PART_INDEX = {"message": {"content_index": 0}, "reasoning": {"summary_index": 0}}


def _place(item: Item) -> dict[str, Any]:
    """Where an event belongs: the item, and the one part that messages and thinking have."""
    return {"item_id": item.id, "output_index": item.index, **_PART_INDEX.get(item.kind, {})}


def _status(done: Done) -> str:
    return "incomplete" if done.reason is FinishReason.LENGTH else "completed"


def _usage(usage: Usage) -> dict[str, Any]:
    # How many of the tokens were thinking is not counted, but clients with types of their own insist on the field.
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
