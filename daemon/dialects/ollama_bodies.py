"""The bodies of Ollama's inference endpoints, field by field (contract sections 4 to 6)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from .bodies import Body

TopLogprobs = Annotated[int, msgspec.Meta(ge=0, le=20)]


class Shared(Body, frozen=True):
    """What generate and chat have in common."""

    model: str | None = None
    stream: bool | None = None
    format: Any = None
    keep_alive: Any = None
    options: dict[str, Any] | None = None
    think: Any = None
    truncate: bool | None = None
    shift: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    logit_bias: Any = None
    debug_render_only: bool | None = msgspec.field(name="_debug_render_only", default=None)


class GenerateBody(Shared, frozen=True):
    """POST /api/generate."""

    prompt: str | None = None
    suffix: str | None = None
    system: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None
    images: list[str] | None = None
    messages: Any = None


class FunctionCall(msgspec.Struct, frozen=True):
    """What a tool call calls, and with what."""

    name: str | None = None
    arguments: dict[str, Any] | None = None
    index: int | None = None


class ChatToolCall(msgspec.Struct, frozen=True):
    """A call that the model made in an earlier answer."""

    id: str | None = None
    type: str | None = None
    function: FunctionCall | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn."""

    role: str | None = None
    content: Any = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[ChatToolCall] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class ChatBody(Shared, frozen=True):
    """POST /api/chat."""

    messages: list[ChatMessage] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None


class EmbedBody(Body, frozen=True):
    """POST /api/embed."""

    model: str | None = None
    input: Any = None
    truncate: bool | None = None
    dimensions: int | None = None
    pooling: str | None = None
    keep_alive: Any = None
    options: dict[str, Any] | None = None


class EmbeddingsBody(Body, frozen=True):
    """POST /api/embeddings, the older form."""

    model: str | None = None
    prompt: str | None = None
    pooling: str | None = None
    keep_alive: Any = None
    options: dict[str, Any] | None = None
