"""The bodies of llama.cpp's /completion and /infill, field by field, with the native fields that all dialects take."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from .openai_bodies import NativeFields, Number, TopLogprobs

Token = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
Switch = Number | bool


class AdapterScale(msgspec.Struct, frozen=True):
    """How much an adapter of the model counts, by its number in the Modelfile, from 0."""

    id: Annotated[int, msgspec.Meta(ge=0, lt=1024)]
    scale: Number


class SamplerFields(NativeFields, frozen=True):
    """How to choose tokens. Samplers that Corral has not are ignored with a warning where they are on."""

    model: str | None = None
    stream: bool | None = None
    n_predict: Number | None = None
    n_keep: Number | None = None
    n_probs: TopLogprobs | None = None
    logit_bias: Any = None
    grammar: str | dict[str, Any] | None = None
    json_schema: Any = None
    return_tokens: bool | None = None
    samplers: list[str] | str | None = None
    n_discard: Number | None = None
    n_indent: Number | None = None
    t_max_predict_ms: Number | None = None
    t_max_prompt_ms: Number | None = None
    post_sampling_probs: bool | None = None
    response_fields: list[str] | None = None
    lora: list[AdapterScale] | None = None
    id_slot: int | None = None
    timings_per_token: bool | None = None
    return_progress: bool | None = None


class CompletionBody(SamplerFields, frozen=True):
    """POST /completion: a prompt of text or tokens, or several."""

    prompt: str | list[str | Token | list[Token | str]] | None = None


class ExtraText(msgspec.Struct, frozen=True):
    """A file that the model should know of."""

    text: str
    filename: str | None = None


class InfillBody(SamplerFields, frozen=True):
    """POST /infill: text that goes between a prefix and a suffix. It begins with `prompt`."""

    input_prefix: str | None = None
    input_suffix: str | None = None
    input_extra: list[ExtraText] | None = None
    prompt: str | None = None
