"""The body of Anthropic's /v1/messages, field by field (contract section 11)."""

from __future__ import annotations

from typing import Any

import msgspec

from .openai_bodies import NativeFields


class Source(msgspec.Struct, frozen=True):
    """Where an image or a document is: base64 or text within the body. URLs and stored files are refused by name."""

    type: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: Any = None


class Block(msgspec.Struct, frozen=True):
    """A block of a message or of a tool's result; which fields it needs depends on its type.

    Signatures, caches and citations are bookkeeping of Anthropic's servers, and change nothing here.
    """

    type: str | None = None
    text: str | None = None
    source: Source | str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    title: str | None = None
    context: str | None = None
    cache_control: Any = None
    citations: Any = None
    caller: Any = None
    toolset_name: str | None = None
    transformations: Any = None


class MessageTurn(msgspec.Struct, frozen=True):
    """One turn."""

    role: str | None = None
    content: str | list[Block] | None = None


class Thinking(msgspec.Struct, frozen=True):
    """Whether to think, and whether to show it."""

    type: str | None = None
    budget_tokens: int | None = None
    display: str | None = None


class ToolChoice(msgspec.Struct, frozen=True):
    """Whether tools may or must be called."""

    type: str | None = None
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class OutputConfig(msgspec.Struct, frozen=True):
    """How much effort to put into the answer, and what its text must match."""

    effort: str | None = None
    format: dict[str, Any] | None = None


class MessagesBody(NativeFields, frozen=True):
    """POST /v1/messages, and without max_tokens /v1/messages/count_tokens."""

    model: str | None = None
    max_tokens: int | None = None
    messages: list[MessageTurn] | None = None
    system: str | list[Block] | None = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: dict[str, Any] | None = None
    logit_bias: Any = None
    metadata: Any = None
    cache_control: Any = None
    service_tier: str | None = None
    inference_geo: str | None = None
    speed: str | None = None
    diagnostics: Any = None
    user_profile_id: str | None = None
    workspace_id: str | None = None
    container: Any = None
    mcp_servers: Any = None
    context_management: Any = None
    betas: list[str] | None = None
