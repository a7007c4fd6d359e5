"""The output of /v1/responses: events of an answer gathered into items, each of thinking, text or a call."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.events import Event, TextDelta, ThinkingDelta, TokenLogprob, ToolCallDelta
from .openai_chat_encoder import print_logprob


class Item:
    """One item while it grows. `kind` is the type that it has in an answer."""

    def __init__(self, kind: str, item_id: str, index: int, call: ToolCallDelta | None = None) -> None:
        self.kind = kind
        self.id = item_id
        self.index = index
        self._call = call
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []

    @property
    def text(self) -> str:
        """Its text, or the arguments of its call, so far."""
        return "".join(self._texts)

    def add(self, event: TextDelta | ThinkingDelta | ToolCallDelta) -> str:
        """Take an event in; the text that is new."""
        new = event.arguments if isinstance(event, ToolCallDelta) else event.text
        self._texts.append(new)
        if isinstance(event, TextDelta):
            self._logprobs += event.logprobs
        return new

    def part(self, is_empty: bool = False) -> dict[str, Any]:
        """The one part of a message or of thinking: all of it, or as it is announced."""
        text = "" if is_empty else self.text
        if self.kind == "reasoning":
            return {"type": "summary_text", "text": text}
        logprobs = [] if is_empty else [print_logprob(entry) for entry in self._logprobs]
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}

    def print(self, status: str) -> dict[str, Any]:
        """The item: as it is announced while it is in_progress, else with all that it holds."""
        is_empty = status == "in_progress"
        head: dict[str, Any] = {"id": self.id, "type": self.kind, "status": status}
        if self._call is not None:
            arguments = "" if is_empty else self.text
            return head | {"call_id": self._call.id, "name": self._call.name, "arguments": arguments}
        parts = [] if is_empty else [self.part()]
        if self.kind == "reasoning":
            return head | {"summary": parts}
        return head | {"role": "assistant", "content": parts}


class Step(NamedTuple):
    """What an event did: the item that grew and by which text, whether it is new, and the one that ended for it."""

    grown: Item
    new: str
    is_new: bool
    ended: Item | None


class Output:
    """Items so far. A run of thinking or of text is one, and so is each call."""

    def __init__(self, answer_id: str) -> None:
        self.items: list[Item] = []
        self._answer_id = answer_id
        self._key: tuple[str, int] | None = None

    def take(self, event: Event) -> Step | None:
        """Take an event in. None for those that belong into no item."""
        key = _key(event)
        if key is None or not isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            return None
        is_new, ended = key != self._key, None
        if is_new:
            if not isinstance(event, ToolCallDelta) and not event.text:
                return None
            ended = self.items[-1] if self.items else None
            self._begin(key[0], event if isinstance(event, ToolCallDelta) else None)
            self._key = key
        item = self.items[-1]
        return Step(item, item.add(event), is_new, ended)

    def finish(self) -> tuple[Item | None, Item]:
        """The last item, which ends. In an answer without any that is a message without text, which begins here."""
        if self.items:
            return None, self.items[-1]
        begun = self._begin("message", None)
        return begun, begun

    def _begin(self, kind: str, call: ToolCallDelta | None) -> Item:
        index = len(self.items)
        prefix = {"reasoning": "rs", "message": "msg", "function_call": "fc"}[kind]
        item = Item(kind, f"{prefix}_{self._answer_id}{index:04x}", index, call)
        self.items.append(item)
        return item


def _key(event: Event) -> tuple[str, int] | None:
    """The same for events that belong to one item."""
    match event:
        case TextDelta():
            return "message", 0
        case ThinkingDelta():
            return "reasoning", 0
        case ToolCallDelta():
            return "function_call", event.index
        case _:
            return None
