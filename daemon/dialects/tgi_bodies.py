"""The bodies of TGI's endpoints, field by field (contract section 16)."""

from __future__ import annotations

from typing import Any

import msgspec

from .openai_bodies import NativeFields, Number, TopLogprobs


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """How to generate, and what to tell of it."""

    max_new_tokens: int | None = None
    temperature: Number | None = None
    top_k: int | None = None
    top_p: Number | None = None
    typical_p: Number | None = None
    do_sample: bool | None = None
    seed: int | None = None
    stop: list[str] | None = None
    repetition_penalty: Number | None = None
    frequency_penalty: Number | None = None
    best_of: int | None = None
    return_full_text: bool | None = None
    details: bool | None = None
    decoder_input_details: bool | None = None
    top_n_tokens: TopLogprobs | None = None
    grammar: dict[str, Any] | None = None
    truncate: int | None = None
    watermark: bool | None = None
    adapter_id: str | None = None


class GenerateBody(NativeFields, frozen=True):
    """POST /generate, /generate_stream and /. No model means the one that is loaded, or the default."""

    model: str | None = None
    inputs: str | None = None
    parameters: Parameters | None = None
    stream: bool | None = None
