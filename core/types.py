"""The values of a request: messages and their parts, prompts, sampling, load options. Frozen, and the same in both
processes: msgspec encodes them on the wire between daemon and runner."""

from __future__ import annotations

from typing import Any

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    data: bytes


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    text: str


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    id: str
    name: str
    arguments: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    """The answer of a tool; `id` and `name` may be empty when the client gave none."""

    id: str
    name: str
    text: str


Part = Text | Image | Thinking | ToolCall | ToolResult


class Message(msgspec.Struct, frozen=True):
    """One turn. `role` is lower case: system, user, assistant or tool."""

    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text parts and tool results, joined as they stand."""
        return "".join(part.text for part in self.parts if isinstance(part, Text | ToolResult))


def text_message(role: str, text: str) -> Message:
    """A message of one text part."""
    return Message(role, (Text(text),))


class ChatPrompt(msgspec.Struct, frozen=True, tag="chat"):
    """Turns to be rendered through the model's template. `context` holds tokens of an earlier answer to go on from.

    `tools` are in OpenAI's form. `think` is None where the client did not say, true or false, or a level like "high".
    `variables` are for a Jinja template that knows them. With `continue_last` the answer goes on with the last message.
    """

    messages: tuple[Message, ...]
    context: tuple[int, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    think: bool | str | None = None
    variables: dict[str, Any] = {}
    continue_last: bool = False


class TextPrompt(msgspec.Struct, frozen=True, tag="raw"):
    """Text that goes to the model as it is.

    Markers of special tokens in it count as such, and the token that starts every prompt is put in front, unless told
    otherwise.
    """

    text: str
    parse_special: bool = True
    add_special: bool = True


class TokensPrompt(msgspec.Struct, frozen=True, tag="tokens"):
    """Tokens that go to the model as they are."""

    tokens: tuple[int, ...]


class InfillPrompt(msgspec.Struct, frozen=True, tag="infill"):
    """What stands before and after the text that is wanted; the template says how the model is told."""

    prefix: str
    suffix: str


Prompt = ChatPrompt | TextPrompt | TokensPrompt | InfillPrompt


class Sampling(msgspec.Struct, frozen=True):
    """How tokens are chosen, for one request. Defaults are Ollama's (contract section 4).

    No end-of-generation token comes before `min_tokens`, and none at all with `ignore_eos`. `logit_bias` holds (token,
    what is added to its logit), `lora_scales` how much each adapter of the model counts: None means all of them wholly,
    and those beyond the list not at all. Without `cache_prompt` nothing of earlier requests is reused.

    `draft_num_predict` is how many tokens may be guessed ahead, to be checked together; None and 0 mean no guesses.

    From `min_keep` to `mirostat_eta` names, meanings and defaults are those of llama.cpp's server; 0 or less means off.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.9
    min_p: float = 0.0
    typical_p: float = 1.0
    repeat_last_n: int = 64
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = -1
    num_predict: int = -1
    num_keep: int = 4
    min_keep: int = 0
    top_n_sigma: float = -1.0
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    stop: tuple[str, ...] = ()
    min_tokens: int = 0
    ignore_eos: bool = False
    cache_prompt: bool = True
    logit_bias: tuple[tuple[int, float], ...] = ()
    lora_scales: tuple[float, ...] | None = None
    draft_num_predict: int | None = None


class LoadOptions(msgspec.Struct, frozen=True):
    """What needs another load to change. None means: choose for me.

    num_ctx is the window of one sequence in tokens; num_parallel how many sequences run at once.
    """

    num_ctx: int | None = None
    num_parallel: int | None = None
    num_batch: int | None = None
    num_gpu: int | None = None
    main_gpu: int | None = None
    num_thread: int | None = None
    tensor_split: tuple[float, ...] | None = None
    use_mmap: bool | None = None
    use_mlock: bool | None = None
    kv_cache_type: str | None = None
    flash_attention: bool | None = None


class LoadSpec(msgspec.Struct, frozen=True):
    """What a runner loads. Paths are absolute and stay inside this machine."""

    backend: str
    model_path: str
    options: LoadOptions


class OutputFormat(msgspec.Struct, frozen=True):
    """What an answer must match. `kind` is json (any object), json_schema, regex, lark, ebnf (GBNF, or Lark
    where it looks so) or choice (a JSON list of texts); `source` is its text."""

    kind: str
    source: str = ""


class ToolPolicy(msgspec.Struct, frozen=True):
    """Whether tools may or must be called. `names` are the only ones that count, all where it is empty."""

    is_required: bool = False
    names: tuple[str, ...] = ()
    parallel: bool = True


class GenerateRequest(msgspec.Struct, frozen=True):
    """One generation, resolved against its model. `window` caps prompt and answer, in tokens, below the loaded window.

    `template` is a Go template in place of the Jinja one that the weights carry. `top_logprobs` is None when no
    log-probabilities are wanted. With `echo` the answer begins with the prompt. `adapters` are paths of LoRA adapters,
    and `projector` of what makes images fit for the model.
    """

    id: int
    prompt: Prompt
    sampling: Sampling = Sampling()
    window: int | None = None
    truncate: bool = True
    shift: bool = True
    top_logprobs: int | None = None
    format: OutputFormat | None = None
    template: str | None = None
    want_context: bool = False
    render_only: bool = False
    tool_policy: ToolPolicy = ToolPolicy()
    echo: bool = False
    adapters: tuple[str, ...] = ()
    projector: str | None = None


class EmbedPair(msgspec.Struct, frozen=True):
    """A query and a document that a rank head compares."""

    query: str
    document: str


class EmbedRequest(msgspec.Struct, frozen=True):
    """Texts to make vectors of. A pair is a query and a document for a model with a rank head: its vector is the score.

    `window` caps a text, in tokens; one that is longer is cut where `truncate` says so. `dimensions` cuts vectors, and
    `normalize` brings them to unit length afterwards. `pooling` is mean, cls or last in place of the model's own.
    """

    id: int
    inputs: tuple[str | tuple[int, ...] | EmbedPair, ...]
    window: int | None = None
    truncate: bool = True
    normalize: bool = True
    dimensions: int | None = None
    pooling: str | None = None
