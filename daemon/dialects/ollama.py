"""Ollama's /api/generate and /api/chat (contract sections 4 and 5): bodies to Calls."""

from __future__ import annotations

from typing import Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest, Unsupported
from ...core.options import check_options
from ...core.types import (
    ChatPrompt,
    InfillPrompt,
    Message,
    OutputFormat,
    Part,
    Prompt,
    Text,
    TextPrompt,
    ToolCall,
    ToolResult,
    text_message,
)
from .endpoint import Call, Endpoint
from .fields import Fields
from .ollama_encoder import ChatEncoder, GenerateEncoder, encode_error

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_THINK_LEVELS = ("high", "medium", "low", "max")


def parse_generate(body: dict[str, Any]) -> Call:
    """A body of /api/generate. Errors: InvalidRequest names the field."""
    fields = Fields(body)
    call = _shared(fields, "generate")
    text = fields.text("prompt") or ""
    raw = fields.flag("raw", False)
    system = fields.text("system")
    if not text and fields.raw("messages") is not None:
        raise InvalidRequest("messages has no place on /api/generate: send them to /api/chat")
    if raw and (system or fields.text("template") or fields.raw("context")):
        raise InvalidRequest("raw mode does not support template, system, or context")
    suffix, template = fields.text("suffix"), fields.text("template")
    if suffix and raw:
        raise InvalidRequest("raw mode does not support suffix: write the infill markers into the prompt")
    prompt: Prompt | None = None
    if text and raw:
        prompt = TextPrompt(text)
    elif suffix:
        prompt = InfillPrompt(text, suffix)
    elif text:
        prompt = ChatPrompt((text_message("user", text),), _context(fields))
    return msgspec.structs.replace(
        call,
        prompt=prompt,
        system=system or None,
        template=template or None,
        needs=(*call.needs, "insert") if suffix else call.needs,
        want_context=not raw,
    )


def parse_chat(body: dict[str, Any]) -> Call:
    """A body of /api/chat. Errors: InvalidRequest names the field."""
    fields = Fields(body)
    call = _shared(fields, "chat")
    messages = tuple(_message(index, message) for index, message in enumerate(fields.objects("messages")))
    if fields.objects("tools"):
        call = msgspec.structs.replace(call, needs=(*call.needs, "tools"))
    return msgspec.structs.replace(call, prompt=ChatPrompt(messages) if messages else None)


def _shared(fields: Fields, verb: str) -> Call:
    options, warnings = check_options(fields.mapping("options"))
    needs = ("thinking",) if _thinks(fields.raw("think")) else ()
    if fields.items("images"):
        needs = (*needs, "vision")
    return Call(
        model=fields.model("model"),
        verb=verb,
        prompt=None,
        stream=fields.flag("stream", True),
        options=options,
        keep_alive=parse_keep_alive(fields.raw("keep_alive")),
        truncate=fields.flag("truncate", True),
        shift=fields.flag("shift", True),
        top_logprobs=fields.top_logprobs(),
        format=_format(fields),
        render_only=fields.flag("_debug_render_only", False),
        needs=needs,
        warnings=tuple(warnings),
    )


def _message(index: int, body: dict[str, Any]) -> Message:
    where = f"messages[{index}]."
    fields = Fields(body, where)
    role = _ROLES.get((fields.text("role") or "").lower())
    if role is None:
        raise InvalidRequest(f"{where}role must be one of system, user, assistant, tool")
    if isinstance(fields.raw("content"), list):
        raise InvalidRequest(f"{where}content must be a string here; lists of parts belong to /v1/chat/completions")
    content = fields.text("content") or ""
    if fields.items("images"):
        raise Unsupported(f"{where}images: this version has no engine for images yet")
    parts: list[Part] = [_tool_call(where, call) for call in fields.objects("tool_calls")]
    if role == "tool":
        return Message(role, (ToolResult(fields.text("tool_call_id") or "", fields.text("tool_name") or "", content),))
    return Message(role, (Text(content), *parts))


def _tool_call(where: str, body: dict[str, Any]) -> ToolCall:
    function = Fields(Fields(body, where).mapping("function"), f"{where}tool_calls.function.")
    name = function.text("name") or ""
    return ToolCall(Fields(body, where).text("id") or "", name, function.mapping("arguments"))


def _context(fields: Fields) -> tuple[int, ...]:
    tokens = fields.items("context") or []
    if not all(isinstance(token, int) and not isinstance(token, bool) and token >= 0 for token in tokens):
        raise InvalidRequest("context must be a list of token numbers, as an earlier answer gave it")
    return tuple(tokens)


def _format(fields: Fields) -> OutputFormat | None:
    value = fields.raw("format")
    if value is None or value == "":
        return None
    if value == "json":
        return OutputFormat("json")
    if isinstance(value, dict):
        return OutputFormat("json_schema", msgspec.json.encode(value).decode())
    raise InvalidRequest(f'invalid format: give "json" or a JSON Schema object, not {repr(value)[:40]}')


def _thinks(value: Any) -> bool:
    if value is None or value is False:
        return False
    if value is True or value in _THINK_LEVELS:
        return True
    raise InvalidRequest(f"think must be true, false, {', '.join(_THINK_LEVELS)}, not {repr(value)[:40]}")


ENDPOINTS = (
    Endpoint("POST", "/api/generate", parse_generate, GenerateEncoder, encode_error),
    Endpoint("POST", "/api/chat", parse_chat, ChatEncoder, encode_error),
)
