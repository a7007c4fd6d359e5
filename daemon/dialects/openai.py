"""OpenAI's /v1/chat/completions and /v1/completions (contract section 10): bodies to Calls.

Only fields that are present override the model's own parameters. Native options are taken as extra fields.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest, Unsupported
from ...core.options import OPTIONS, check_options
from ...core.types import ChatPrompt, Message, OutputFormat, Part, Text, ToolCall, ToolResult, text_message
from .endpoint import Call, Endpoint
from .fields import Fields
from .openai_encoder import ChatCompletionEncoder, CompletionEncoder, encode_error

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")


def parse_chat_completion(body: dict[str, Any]) -> Call:
    """A body of /v1/chat/completions. Errors: InvalidRequest names the field."""
    fields = Fields(body)
    messages = fields.objects("messages")
    model = fields.model("model")
    if not messages:
        raise InvalidRequest("[] is too short - 'messages'")
    prompt = ChatPrompt(tuple(_message(index, message) for index, message in enumerate(messages)))
    return _call(fields, model, prompt, "chat", fields.top_logprobs())


def parse_completion(body: dict[str, Any]) -> Call:
    """A body of /v1/completions: the prompt goes through the chat template. Errors: InvalidRequest names the field."""
    fields = Fields(body)
    model = fields.model("model")
    if isinstance(fields.raw("prompt"), list):
        raise Unsupported("prompt: this version takes one string, not a list")
    text = fields.text("prompt") or ""
    for name in ("suffix", "echo", "logprobs"):
        if fields.raw(name):
            raise Unsupported(f"{name}: this version cannot do this on /v1/completions yet; leave the field out")
    return _call(fields, model, ChatPrompt((text_message("user", text),)) if text else None, "generate", None)


def _call(fields: Fields, model: str, prompt: ChatPrompt | None, verb: str, top_logprobs: int | None) -> Call:
    if (fields.number("n", 1, 128) or 1) != 1:
        raise Unsupported("n: this version gives one choice a request; ask several times")
    if fields.mapping("logit_bias"):
        raise Unsupported("logit_bias: this version cannot do this yet; leave the field out")
    options, warnings = check_options(_options(fields))
    needs = ("tools",) if fields.objects("tools") else ()
    if _thinks(fields):
        needs = (*needs, "thinking")
    return Call(
        model=model,
        verb=verb,
        prompt=prompt,
        stream=fields.flag("stream", False),
        options=options,
        keep_alive=parse_keep_alive(fields.raw("keep_alive")),
        top_logprobs=top_logprobs,
        format=_format(fields),
        needs=needs,
        warnings=tuple(warnings),
        include_usage=Fields(fields.mapping("stream_options"), "stream_options.").flag("include_usage", False),
    )


def _options(fields: Fields) -> dict[str, Any]:
    """Options of any spelling that the body has; OpenAI's own names win over native ones."""
    found = {name: fields.raw(name) for name in OPTIONS if fields.raw(name) is not None}
    for name in ("max_tokens", "max_completion_tokens"):
        limit = fields.number(name, 0, 1 << 31)
        if limit is not None:
            found["num_predict"] = limit
    return found


def _message(index: int, body: dict[str, Any]) -> Message:
    where = f"messages[{index}]."
    fields = Fields(body, where)
    shown = fields.text("role") or ""
    role = _ROLES.get(shown.lower())
    if role is None:
        raise InvalidRequest(f"{where}role {shown[:40]!r} must be one of {', '.join(_ROLES)}")
    parts = _content(where, fields.raw("content"))
    if role == "tool":
        text = "".join(part.text for part in parts)
        return Message(role, (ToolResult(fields.text("tool_call_id") or "", fields.text("name") or "", text),))
    calls: list[Part] = [_tool_call(where, call) for call in fields.objects("tool_calls")]
    return Message(role, (*parts, *calls))


def _content(where: str, content: Any) -> tuple[Text, ...]:
    """Text parts. null and absent count as an empty text, as clients send for turns of tool calls."""
    if content is None:
        return (Text(""),)
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list) or not content:
        raise InvalidRequest(f"{where}content must be a string or a list of parts, not {repr(content)[:40]}")
    return tuple(_part(f"{where}content[{index}]", part) for index, part in enumerate(content))


def _part(where: str, part: Any) -> Text:
    if not isinstance(part, dict):
        raise InvalidRequest(f"{where} must be an object")
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return Text(part["text"])
    if kind in ("image_url", "input_audio"):
        raise Unsupported(f"{where}: this version takes text only, not {kind}")
    raise InvalidRequest(f"{where} must be a part of type text with a string in `text`")


def _tool_call(where: str, body: dict[str, Any]) -> ToolCall:
    function = Fields(Fields(body, where).mapping("function"), f"{where}tool_calls.function.")
    try:
        arguments = json.loads(function.text("arguments") or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise InvalidRequest(f"{where}tool_calls.function.arguments must be the text of a JSON object")
    return ToolCall(Fields(body, where).text("id") or "", function.text("name") or "", arguments)


def _format(fields: Fields) -> OutputFormat | None:
    response_format = Fields(fields.mapping("response_format"), "response_format.")
    kind = response_format.text("type")
    if kind in (None, "text"):
        return None
    if kind == "json_object":
        return OutputFormat("json")
    if kind != "json_schema":
        raise InvalidRequest(f"response_format.type must be text, json_object or json_schema, not {kind[:40]!r}")
    holder = Fields(response_format.mapping("json_schema"), "response_format.json_schema.")
    schema = holder.raw("schema")
    if not isinstance(schema, dict):
        raise InvalidRequest("response_format.json_schema.schema must be an object")
    return OutputFormat("json_schema", msgspec.json.encode(schema).decode())


def _thinks(fields: Fields) -> bool:
    effort = fields.text("reasoning_effort") or Fields(fields.mapping("reasoning"), "reasoning.").text("effort")
    if effort is not None and effort not in _EFFORTS:
        raise InvalidRequest(f"reasoning_effort must be one of {', '.join(_EFFORTS)}, not {effort[:40]!r}")
    return effort not in (None, "none")


ENDPOINTS = (
    Endpoint("POST", "/v1/chat/completions", parse_chat_completion, ChatCompletionEncoder, encode_error),
    Endpoint("POST", "/v1/completions", parse_completion, CompletionEncoder, encode_error),
)
