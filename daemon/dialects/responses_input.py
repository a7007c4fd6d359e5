"""Items of /v1/responses as messages: what an assistant's turn was split into becomes one message again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.errors import InvalidRequest, Unsupported
from ...core.types import Message, Part, Text, Thinking, ToolCall, ToolResult, text_message
from .openai_messages import read_arguments, read_image_part
from .responses_bodies import InputItem, InputPart

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_MISSING = ("input_file", "input_audio")


def read_items(given: str | Sequence[InputItem] | None) -> tuple[Message, ...]:
    """The messages of an input. Errors: InvalidRequest names the item and the field."""
    if isinstance(given, str):
        return (text_message("user", given),) if given else ()
    turns = _Turns()
    for index, item in enumerate(given or ()):
        where = f"input[{index}]"
        kind = item.type or ("message" if item.role else "")
        reader = _READERS.get(kind)
        if reader is None:
            raise InvalidRequest(f"{where}.type must be one of {', '.join(_READERS)}, not {kind[:40]!r}")
        reader(turns, where, item)
    return turns.finish()


class _Turns:
    """Messages so far, and the assistant's turn that is being put together from its items."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._parts: list[Part] = []
        self._names: dict[str, str] = {}

    def finish(self) -> tuple[Message, ...]:
        """All messages."""
        self._close()
        return tuple(self._messages)

    def add_message(self, where: str, item: InputItem) -> None:
        """A turn of anybody."""
        role = _ROLES.get((item.role or "").lower())
        if role is None:
            raise InvalidRequest(f"{where}.role {(item.role or '')[:40]!r} must be one of {', '.join(_ROLES)}")
        parts = _read_parts(f"{where}.content", item.content)
        if role == "assistant":
            self._open()
            self._parts += parts
        else:
            self._close()
            self._messages.append(Message(role, tuple(parts)))

    def add_thinking(self, where: str, item: InputItem) -> None:
        """What the assistant thought before its answer."""
        content = [] if isinstance(item.content, str) else item.content or []
        texts = [part.text for part in [*(item.summary or []), *content] if part.text]
        del where
        self._open()
        if texts:
            self._parts.append(Thinking("\n\n".join(texts)))

    def add_call(self, where: str, item: InputItem) -> None:
        """A call that the assistant made, in the same turn as what it said."""
        if not item.name or not item.call_id:
            raise InvalidRequest(f"{where}: a function_call needs name and call_id")
        self._names[item.call_id] = item.name
        self._parts.append(ToolCall(item.call_id, item.name, read_arguments(item.arguments, f"{where}.arguments")))

    def add_result(self, where: str, item: InputItem) -> None:
        """The result of a call."""
        if not item.call_id:
            raise InvalidRequest(f"{where}: a function_call_output needs call_id")
        parts = _read_parts(f"{where}.output", item.output)
        texts = [part.text for part in parts if isinstance(part, Text)]
        if len(texts) < len(parts):
            raise Unsupported(f"{where}.output: the result of a call must be text; send images in a user message")
        self._close()
        name = self._names.get(item.call_id, "")
        self._messages.append(Message("tool", (ToolResult(item.call_id, name, "".join(texts)),)))

    def _open(self) -> None:
        """Thinking and text begin another turn unless only thinking stands there."""
        if any(not isinstance(part, Thinking) for part in self._parts):
            self._close()

    def _close(self) -> None:
        if self._parts:
            self._messages.append(Message("assistant", tuple(self._parts)))
            self._parts = []


_READERS: dict[str, Callable[[_Turns, str, InputItem], None]] = {
    "message": _Turns.add_message,
    "function_call": _Turns.add_call,
    "function_call_output": _Turns.add_result,
    "reasoning": _Turns.add_thinking,
}


def _read_parts(where: str, content: str | list[InputPart] | None) -> list[Part]:
    if content is None or isinstance(content, str):
        return [Text(content or "")]
    if not content:
        raise InvalidRequest(f"{where} must be a string or a list of parts, not an empty list")
    return [_read_part(f"{where}[{index}]", part) for index, part in enumerate(content)]


def _read_part(where: str, part: InputPart) -> Part:
    if part.type in _TEXTS and part.text is not None:
        return Text(part.text)
    if part.type == "refusal" and part.refusal is not None:
        return Text(part.refusal)
    if part.type == "input_image":
        if part.image_url is None:
            raise Unsupported(f"{where}: an image must come as a data: URL in image_url; there are no stored files")
        return read_image_part(part.image_url, f"{where}.image_url")
    if part.type in _MISSING:
        raise Unsupported(f"{where}: this version takes text and images, not {part.type}")
    raise InvalidRequest(
        f"{where} must be a part of type input_text, output_text or input_image, not {(part.type or '')[:40]!r}"
    )
