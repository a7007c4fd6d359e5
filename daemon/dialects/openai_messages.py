"""OpenAI's messages as ours: roles, content parts, tool calls and results. Parts of a message stay one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.errors import InvalidRequest, Unsupported
from ...core.types import Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from .images import read_image_url
from .openai_bodies import ChatMessage, ContentPart, FunctionCall

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
# Parts that OpenAI has and this version cannot take.
_MISSING = ("input_audio", "file")


def read_messages(bodies: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """All turns. Errors: InvalidRequest names the message and the field."""
    messages: list[Message] = []
    # Results name the call by id only; templates want the tool's name as well.
    names: dict[str, str] = {}
    for index, body in enumerate(bodies):
        message = _read_message(f"messages[{index}]", body, names)
        names |= {part.id: part.name for part in message.parts if isinstance(part, ToolCall)}
        messages.append(message)
    return tuple(messages)


def read_arguments(value: str | dict[str, Any] | None, where: str) -> dict[str, Any]:
    """A call's arguments: the text of a JSON object, or the object itself. Errors: InvalidRequest."""
    if isinstance(value, dict):
        return value
    try:
        arguments = msgspec.json.decode(value or "{}")
    except (msgspec.DecodeError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise InvalidRequest(f"{where} must be the text of a JSON object, not {(value or '')[:40]!r}")
    return arguments


def read_image_part(value: dict[str, Any] | str | None, where: str) -> Image:
    """The image of a part that holds a URL or an object with one. Errors: InvalidRequest names the part."""
    url = value.get("url") if isinstance(value, dict) else value
    if not isinstance(url, str):
        raise InvalidRequest(f"{where} must be a data: URL, or an object with one as `url`")
    return read_image_url(url, where)


def _read_message(where: str, body: ChatMessage, names: dict[str, str]) -> Message:
    role = _ROLES.get((body.role or "").lower())
    if role is None:
        shown = (body.role or "")[:40]
        raise InvalidRequest(f"{where}.role {shown!r} must be one of {', '.join(_ROLES)}")
    content = _read_content(f"{where}.content", body.content)
    if role == "tool":
        return Message(role, (_read_result(where, body, content, names),))
    if body.refusal and not any(isinstance(part, Text) and part.text for part in content):
        content = [Text(body.refusal)]
    thinking = body.reasoning or body.reasoning_content
    before: list[Part] = [Thinking(thinking)] if thinking else []
    return Message(role, (*before, *content, *_read_calls(where, body)))


def _read_content(where: str, content: str | list[ContentPart] | None) -> list[Part]:
    """Text and images. null and absent count as an empty text, as clients send for turns of tool calls."""
    if content is None or isinstance(content, str):
        return [Text(content or "")]
    if not content:
        raise InvalidRequest(f"{where} must be a string or a list of parts, not an empty list")
    return [_read_part(f"{where}[{index}]", part) for index, part in enumerate(content)]


def _read_part(where: str, part: ContentPart) -> Part:
    if part.type == "text" and part.text is not None:
        return Text(part.text)
    if part.type == "refusal" and part.refusal is not None:
        return Text(part.refusal)
    if part.type == "image_url":
        return read_image_part(part.image_url, f"{where}.image_url")
    if part.type in _MISSING:
        raise Unsupported(f"{where}: this version takes text and images, not {part.type}")
    if part.type in ("text", "refusal"):
        raise InvalidRequest(f"{where} must have a string in `{part.type}`")
    raise InvalidRequest(f"{where}.type must be text, image_url or refusal, not {(part.type or '')[:40]!r}")


def _read_result(where: str, body: ChatMessage, content: list[Part], names: dict[str, str]) -> ToolResult:
    texts = [part.text for part in content if isinstance(part, Text)]
    if len(texts) < len(content):
        raise Unsupported(f"{where}.content: the result of a tool must be text; send images in a user message")
    call_id = body.tool_call_id or ""
    return ToolResult(call_id, body.name or names.get(call_id, ""), "".join(texts))


def _read_calls(where: str, body: ChatMessage) -> list[ToolCall]:
    calls = [
        _read_call(f"{where}.tool_calls[{index}].function", call.id, call.function)
        for index, call in enumerate(body.tool_calls or [])
    ]
    if body.function_call is not None:
        calls.append(_read_call(f"{where}.function_call", None, body.function_call))
    return calls


def _read_call(where: str, call_id: str | None, function: FunctionCall | None) -> ToolCall:
    if function is None or not function.name:
        raise InvalidRequest(f"{where} must be an object with a name")
    return ToolCall(call_id or "", function.name, read_arguments(function.arguments, f"{where}.arguments"))
