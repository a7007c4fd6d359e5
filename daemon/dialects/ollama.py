"""Ollama's inference endpoints (contract sections 4 to 6): bodies to Calls."""

from __future__ import annotations

from typing import Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest
from ...core.options import check_options
from ...core.types import (
    ChatPrompt,
    InfillPrompt,
    Message,
    Part,
    Prompt,
    Text,
    TextPrompt,
    Thinking,
    ToolCall,
    ToolResult,
)
from .bodies import Body
from .endpoint import Call, EmbedCall, Endpoint
from .fields import check_pooling, model_name, read_logit_bias, read_think
from .formats import native_format
from .images import read_image
from .ollama_bodies import ChatBody, ChatMessage, ChatToolCall, EmbedBody, EmbeddingsBody, GenerateBody, Shared
from .ollama_encoder import ChatEncoder, EmbeddingsEncoder, EmbedEncoder, GenerateEncoder, encode_error
from .tools import check_tools, choose_tools

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def parse_generate(body: GenerateBody) -> Call:
    """A body of /api/generate. Errors: InvalidRequest names the field."""
    text = body.prompt or ""
    if not text and body.messages is not None:
        raise InvalidRequest("messages has no place on /api/generate: send them to /api/chat")
    if body.raw and (body.system or body.template or body.context is not None):
        raise InvalidRequest("raw mode does not support template, system, or context")
    if body.suffix and body.raw:
        raise InvalidRequest("raw mode does not support suffix: write the infill markers into the prompt")
    images = [read_image(image, f"images[{index}]") for index, image in enumerate(body.images or [])]
    think = read_think(body.think)
    prompt: Prompt | None = None
    if text and body.raw:
        prompt = TextPrompt(text)
    elif body.suffix:
        prompt = InfillPrompt(text, body.suffix)
    elif text or images:
        message = Message("user", (Text(text), *images))
        prompt = ChatPrompt((message,), _context(body.context), think=think)
    return msgspec.structs.replace(
        _shared(body, "generate"),
        prompts=(prompt,) if prompt else (),
        system=body.system or None,
        template=body.template or None,
        want_context=not body.raw,
    )


def parse_chat(body: ChatBody) -> Call:
    """A body of /api/chat. Errors: InvalidRequest names the field."""
    messages = tuple(_message(f"messages[{index}]", message) for index, message in enumerate(body.messages or []))
    tools, policy = choose_tools(check_tools(body.tools), body.tool_choice, body.parallel_tool_calls)
    prompt = ChatPrompt(messages, tools=tools, think=read_think(body.think))
    return msgspec.structs.replace(_shared(body, "chat"), prompts=(prompt,) if messages else (), tool_policy=policy)


def parse_embed(body: EmbedBody) -> EmbedCall:
    """A body of /api/embed. Errors: InvalidRequest names the field."""
    given = [body.input] if isinstance(body.input, str) else body.input
    if given in (None, [""]):
        given = []
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise InvalidRequest("invalid input type: input must be a string or a list of strings")
    if body.dimensions is not None and body.dimensions < 0:
        raise InvalidRequest("dimensions must be a whole number from 1 on")
    return msgspec.structs.replace(
        _embedding(body),
        inputs=tuple(given),
        truncate=body.truncate is not False,
        dimensions=body.dimensions or None,
    )


def parse_embeddings(body: EmbeddingsBody) -> EmbedCall:
    """A body of /api/embeddings: one text, and a vector as the model gives it. Errors: InvalidRequest."""
    inputs = (body.prompt,) if body.prompt else ()
    return msgspec.structs.replace(_embedding(body), inputs=inputs, normalize=False)


def _shared(body: Shared, verb: str) -> Call:
    options, warnings = check_options(body.options or {})
    return Call(
        model=model_name(body.model),
        verb=verb,
        stream=body.stream is not False,
        options=options,
        logit_bias=read_logit_bias(body.logit_bias),
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False,
        shift=body.shift is not False,
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        format=native_format(body.format),
        render_only=body.debug_render_only is True,
        warnings=tuple(warnings),
    )


def _embedding(body: EmbedBody | EmbeddingsBody) -> EmbedCall:
    options, warnings = check_options(body.options or {})
    return EmbedCall(
        model=model_name(body.model),
        options=options,
        pooling=check_pooling(body.pooling),
        keep_alive=parse_keep_alive(body.keep_alive),
        warnings=tuple(warnings),
    )


def _message(where: str, body: ChatMessage) -> Message:
    role = _ROLES.get((body.role or "").lower())
    if role is None:
        raise InvalidRequest(f"{where}.role must be one of system, user, assistant, tool")
    if isinstance(body.content, list):
        raise InvalidRequest(f"{where}.content must be a string here; lists of parts belong to /v1/chat/completions")
    if body.content is not None and not isinstance(body.content, str):
        raise InvalidRequest(f"{where}.content must be a string, not {repr(body.content)[:40]}")
    content = body.content or ""
    if role == "tool":
        return Message(role, (ToolResult(body.tool_call_id or "", body.tool_name or "", content),))
    thinking: list[Part] = [Thinking(body.thinking)] if body.thinking else []
    images = [read_image(image, f"{where}.images[{index}]") for index, image in enumerate(body.images or [])]
    return Message(role, (*thinking, Text(content), *images, *map(_tool_call, body.tool_calls or [])))


def _tool_call(call: ChatToolCall) -> ToolCall:
    function = call.function
    return ToolCall(call.id or "", (function and function.name) or "", (function and function.arguments) or {})


def _context(tokens: list[int] | None) -> tuple[int, ...]:
    if any(token < 0 for token in tokens or []):
        raise InvalidRequest("context must be a list of token numbers, as an earlier answer gave it")
    return tuple(tokens or ())


def _endpoint(path: str, body: type[Body], parse: Any, encoder: Any, summary: str) -> Endpoint:
    return Endpoint("POST", path, body, parse, encoder, encode_error, summary)


ENDPOINTS = (
    _endpoint("/api/generate", GenerateBody, parse_generate, GenerateEncoder, "Answer a prompt"),
    _endpoint("/api/chat", ChatBody, parse_chat, ChatEncoder, "Answer a conversation"),
    _endpoint("/api/embed", EmbedBody, parse_embed, EmbedEncoder, "Vectors of texts"),
    _endpoint("/api/embeddings", EmbeddingsBody, parse_embeddings, EmbeddingsEncoder, "The vector of one text"),
)
