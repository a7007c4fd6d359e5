"""The bodies of OpenAI's endpoints, field by field (contract section 10), and the native fields that all take."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from .bodies import Body

Number = int | float
NumChoices = Annotated[int, msgspec.Meta(ge=1, le=128)]
# -1 is how clients of other servers say "no limit".
MaxTokens = Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)]
TopLogprobs = Annotated[int, msgspec.Meta(ge=0, le=20)]
Token = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
# One text or several, the tokens of one text or of several.
Inputs = str | list[str | Token | list[Token]]


class NativeFields(Body, frozen=True):
    """What Corral itself knows, taken as extra fields on every route: all options by name, and more of a request."""

    num_predict: Number | None = None
    num_keep: Number | None = None
    seed: Number | None = None
    temperature: Number | None = None
    top_k: Number | None = None
    top_p: Number | None = None
    min_p: Number | None = None
    typical_p: Number | None = None
    repeat_last_n: Number | None = None
    repeat_penalty: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    min_keep: Number | None = None
    top_n_sigma: Number | None = None
    dynatemp_range: Number | None = None
    dynatemp_exponent: Number | None = None
    xtc_probability: Number | None = None
    xtc_threshold: Number | None = None
    dry_multiplier: Number | None = None
    dry_base: Number | None = None
    dry_allowed_length: Number | None = None
    dry_penalty_last_n: Number | None = None
    dry_sequence_breakers: str | list[str] | None = None
    mirostat: Number | None = None
    mirostat_tau: Number | None = None
    mirostat_eta: Number | None = None
    stop: str | list[str] | None = None
    min_tokens: Number | None = None
    ignore_eos: bool | None = None
    cache_prompt: bool | None = None
    lora_scales: list[Number] | None = None
    draft_num_predict: Number | None = None
    num_ctx: Number | None = None
    num_batch: Number | None = None
    num_gpu: Number | None = None
    main_gpu: Number | None = None
    num_thread: Number | None = None
    tensor_split: list[Number] | None = None
    use_mmap: bool | None = None
    use_mlock: bool | None = None
    options: dict[str, Any] | None = None
    keep_alive: Any = None
    think: Any = None
    truncate: bool | None = None
    shift: bool | None = None
    template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class AccountFields(NativeFields, frozen=True):
    """The model, and what only concerns OpenAI's accounts, billing and caches: it changes no answer and is ignored."""

    model: str | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: dict[str, Any] | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    """How to stream. Obfuscation pads events against listeners, who are not on this machine."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class Reasoning(msgspec.Struct, frozen=True):
    """How much to think. Thinking is always shown in full, whatever summary is asked for."""

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class GenerationFields(AccountFields, frozen=True):
    """What chat completions and completions have in common, other servers' spellings included."""

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: MaxTokens | None = None
    n: NumChoices | None = None
    logit_bias: Any = None
    repetition_penalty: Number | None = None
    reasoning_effort: str | None = None
    reasoning: Reasoning | None = None
    response_format: Any = None
    format: Any = None
    json_schema: Any = None
    guided_json: Any = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    structured_outputs: Any = None
    grammar: Any = None


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message's content: text, refusal or image_url; others are refused by name."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    image_url: dict[str, Any] | str | None = None
    input_audio: Any = None
    file: Any = None
    cache_control: Any = None
    annotations: Any = None


class FunctionCall(msgspec.Struct, frozen=True):
    """What a tool call calls, and with what: the text of a JSON object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class MessageToolCall(msgspec.Struct, frozen=True):
    """A call that the model made in an earlier answer."""

    id: str | None = None
    type: str | None = None
    index: int | None = None
    function: FunctionCall | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn. `name` tells participants apart, which templates cannot; of audio there is only the id."""

    role: str | None = None
    content: str | list[ContentPart] | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[MessageToolCall] | None = None
    tool_call_id: str | None = None
    function_call: FunctionCall | None = None
    audio: Any = None
    annotations: Any = None


class ChatCompletionBody(GenerationFields, frozen=True):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage] | None = None
    max_completion_tokens: MaxTokens | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: Any = None
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None
    store: bool | None = None
    modalities: list[str] | None = None
    audio: Any = None
    prediction: Any = None
    verbosity: str | None = None
    web_search_options: Any = None
    moderation: Any = None


class CompletionBody(GenerationFields, frozen=True):
    """POST /v1/completions. `raw` sends the prompt as it is, without the chat template."""

    prompt: Inputs | None = None
    suffix: str | None = None
    echo: bool | None = None
    raw: bool | None = None
    logprobs: TopLogprobs | bool | None = None
    best_of: NumChoices | None = None


class EmbeddingBody(AccountFields, frozen=True):
    """POST /v1/embeddings."""

    input: Inputs | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    encoding_format: str | None = None
    pooling: str | None = None
