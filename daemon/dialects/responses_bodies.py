"""The body of OpenAI's /v1/responses, field by field (contract section 10)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from .openai_bodies import AccountFields, Reasoning, StreamOptions, TopLogprobs

OutputTokens = Annotated[int, msgspec.Meta(ge=1, le=1 << 31)]


class InputPart(msgspec.Struct, frozen=True):
    """A part of a message, of a tool's result or of a summary; which kinds may stand where is checked there."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    image_url: str | dict[str, Any] | None = None
    file_id: str | None = None
    detail: str | None = None
    annotations: Any = None
    logprobs: Any = None


class InputItem(msgspec.Struct, frozen=True):
    """A message, a call, a call's result or thinking, as an earlier answer gave it or a client wrote it.

    A message needs no type. What the API keeps of its own bookkeeping in items changes nothing here.
    """

    type: str | None = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    role: str | None = None
    content: str | list[InputPart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    output: str | list[InputPart] | None = None
    summary: list[InputPart] | None = None
    encrypted_content: str | None = None


class TextOptions(msgspec.Struct, frozen=True):
    """What the text of the answer must match."""

    format: dict[str, Any] | None = None
    verbosity: str | None = None


class ResponseBody(AccountFields, frozen=True):
    """POST /v1/responses."""

    input: str | list[InputItem] | None = None
    instructions: str | None = None
    max_output_tokens: OutputTokens | None = None
    text: TextOptions | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: int | None = None
    reasoning: Reasoning | None = None
    top_logprobs: TopLogprobs | None = None
    include: list[str] | None = None
    logit_bias: Any = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    truncation: str | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    context_management: Any = None
    moderation: Any = None
