"""Anthropic's /v1/messages and /v1/messages/count_tokens (contract section 11): bodies to Calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest
from ...core.types import ChatPrompt, Image, Message, OutputFormat, Text, ToolCall, ToolPolicy, ToolResult
from .anthropic_bodies import MessagesBody, ToolChoice
from .anthropic_encoder import CountEncoder, MessageDetails, MessageEncoder, encode_error
from .anthropic_messages import join_text, read_turns
from .endpoint import Call, Endpoint
from .fields import model_name, read_logit_bias
from .formats import one_format, response_format
from .openai_fields import choose_think, read_options
from .tools import Tools, check_tools, choose_tools

_THINKING = {"enabled": True, "adaptive": True, "between_tools": True, "disabled": False}
_CHOICES = {"auto": "auto", "any": "any", "none": "none"}


def parse_messages(body: MessagesBody) -> Call:
    """A body of /v1/messages. Errors: InvalidRequest names the field."""
    model_name(body.model)
    if body.max_tokens is None:
        raise InvalidRequest("max_tokens is required")
    if body.max_tokens < 1:
        raise InvalidRequest(f"max_tokens must be positive, not {body.max_tokens}")
    return _read(body)


def parse_count(body: MessagesBody) -> Call:
    """A body of /v1/messages/count_tokens: the whole prompt, system and tools included, is counted and not answered."""
    return msgspec.structs.replace(_read(body), render_only=True, truncate=False)


def _read(body: MessagesBody) -> Call:
    model = model_name(body.model)
    if not body.messages:
        raise InvalidRequest("messages is required: send at least one")
    messages = read_turns(body.messages)
    system = join_text("system", body.system)
    options, warnings = read_options(body, num_predict=body.max_tokens, stop=body.stop_sequences or None)
    offered, more = _read_tools(body.tools or [])
    tools, policy = _choose(check_tools(offered), body.tool_choice)
    prompt = ChatPrompt(
        messages,
        tools=tools,
        think=_think(body),
        variables=body.chat_template_kwargs or {},
        continue_last=_is_prefill(messages[-1]),
    )
    return Call(
        model=model,
        verb="chat",
        prompts=(prompt,),
        stream=body.stream is True,
        system=system or None,
        template=body.template or None,
        options=options,
        logit_bias=read_logit_bias(body.logit_bias),
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False,
        shift=body.shift is not False,
        format=_read_format(body),
        tool_policy=policy,
        think_optional=True,
        warnings=(*warnings, *more, *_warnings(body)),
        details=MessageDetails(
            num_bytes=_count_bytes(messages, system, tools),
            hides_thinking=body.thinking is not None and body.thinking.display == "omitted",
        ),
    )


def _read_tools(tools: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Tools in OpenAI's form, and a warning for every one that Anthropic's servers would run or know by name."""
    functions: list[dict[str, Any]] = []
    warnings: list[str] = []
    for index, tool in enumerate(tools):
        kind = tool.get("type") or "custom"
        if kind != "custom":
            warnings.append(f"tools[{index}] was ignored: {repr(kind)[:40]} is not a tool of the client's own")
            continue
        function = {"name": tool.get("name"), "parameters": tool.get("input_schema") or {"type": "object"}}
        if isinstance(tool.get("description"), str):
            function["description"] = tool["description"]
        if not isinstance(function["name"], str) or not function["name"]:
            raise InvalidRequest(f"tools[{index}].name is required")
        if not isinstance(function["parameters"], dict):
            raise InvalidRequest(f"tools[{index}].input_schema must be a JSON Schema object")
        functions.append({"type": "function", "function": function})
    return functions, warnings


def _choose(tools: Tools, choice: ToolChoice | None) -> tuple[Tools, ToolPolicy]:
    if choice is None:
        return choose_tools(tools, None, None)
    parallel = choice.disable_parallel_tool_use is not True
    if choice.type == "tool":
        if not choice.name:
            raise InvalidRequest("tool_choice.name is required where its type is tool")
        return choose_tools(tools, {"type": "function", "name": choice.name}, parallel)
    if choice.type not in _CHOICES:
        raise InvalidRequest(f"tool_choice.type must be auto, any, tool or none, not {(choice.type or '')[:40]!r}")
    return choose_tools(tools, _CHOICES[choice.type], parallel)


def _think(body: MessagesBody) -> bool | str | None:
    """Whether to think, as far as the body says; a model that cannot simply answers."""
    effort = body.output_config.effort if body.output_config else None
    asked = choose_think(body, effort, "output_config.effort")
    if body.thinking is None or body.think is not None:
        return asked
    kind = body.thinking.type or ""
    if kind not in _THINKING:
        raise InvalidRequest(f"thinking.type must be one of {', '.join(_THINKING)}, not {kind[:40]!r}")
    return (asked or True) if _THINKING[kind] else False


def _read_format(body: MessagesBody) -> OutputFormat | None:
    config = body.output_config
    return one_format(
        output_config=response_format(config.format if config else None, "output_config.format"),
        output_format=response_format(body.output_format, "output_format"),
    )


def _is_prefill(last: Message) -> bool:
    """Whether the answer is to go on with the last message: the assistant's own, of nothing but text."""
    return (
        last.role == "assistant"
        and bool(last.text.strip())
        and not any(isinstance(part, ToolCall) for part in last.parts)
    )


def _warnings(body: MessagesBody) -> list[str]:
    """Fields that would change the answer, and cannot."""
    ignored = {name: getattr(body, name) for name in ("container", "mcp_servers", "context_management")}
    warnings = [f"{name} was ignored: this version cannot do this" for name, value in ignored.items() if value]
    if body.thinking is not None and body.thinking.budget_tokens is not None:
        warnings.append("thinking.budget_tokens was ignored: max_tokens bounds thinking and answer together")
    return warnings


def _count_bytes(messages: Sequence[Message], system: str, tools: Tools) -> int:
    """Bytes of everything that the model will read, for a guess at its tokens before it has counted them."""
    parts = [part for message in messages for part in message.parts]
    texts = [system, *(part.text for part in parts if isinstance(part, Text | ToolResult))]
    calls = [part.arguments for part in parts if isinstance(part, ToolCall)]
    images = sum(len(part.data) for part in parts if isinstance(part, Image))
    return (
        sum(len(text.encode()) for text in texts) + len(msgspec.json.encode((tools, calls))) - len("[[],[]]") + images
    )


def _endpoint(path: str, parse: Any, encoder: Any, summary: str) -> Endpoint:
    return Endpoint("POST", path, MessagesBody, parse, encoder, encode_error, summary)


ENDPOINTS = (
    _endpoint("/v1/messages", parse_messages, MessageEncoder, "Answer a conversation, in Anthropic's form"),
    _endpoint("/v1/messages/count_tokens", parse_count, CountEncoder, "Tokens of a conversation, in Anthropic's form"),
)
