"""The endpoints of llama.cpp's server that complete a text: /completion and /infill; /tokenize and its like are in
tokens.py."""

from __future__ import annotations

from typing import Any

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest, Unsupported
from ...core.types import InfillPrompt, Prompt, TextPrompt, TokensPrompt
from .bodies import Body
from .endpoint import Call, Endpoint
from .fields import read_logit_bias
from .formats import guided_format
from .llamacpp_bodies import CompletionBody, InfillBody, SamplerFields
from .llamacpp_encoder import CompletionDetails, CompletionEncoder, encode_error
from .openai_fields import read_options

# Fields that switch something on that Corral has not; numbers up to 0 mean off.
_MISSING = """samplers n_indent t_max_predict_ms post_sampling_probs response_fields""".split()
_MAX_PROMPTS = 2048


def parse_completion(body: CompletionBody) -> Call:
    """A body of /completion. Errors: InvalidRequest names the field."""
    return _call(body, _read_prompts(body.prompt))


def parse_infill(body: InfillBody) -> Call:
    """A body of /infill. Errors: InvalidRequest where there is neither prefix nor suffix."""
    if body.input_prefix is None and body.input_suffix is None:
        raise InvalidRequest("input_prefix and input_suffix are missing: send the text before and after the gap")
    extras = [f"{extra.filename}\n{extra.text}\n" if extra.filename else extra.text for extra in body.input_extra or []]
    # What the gap begins with stands before it as well: the answer goes on with either.
    prefix = "\n".join([*extras, (body.input_prefix or "") + (body.prompt or "")])
    return _call(body, (InfillPrompt(prefix, body.input_suffix or ""),))


def _call(body: SamplerFields, prompts: tuple[Prompt, ...]) -> Call:
    options, warnings = read_options(body, num_predict=body.n_predict, num_keep=body.n_keep, lora_scales=_scales(body))
    wants_tokens = body.n_probs or body.return_tokens
    return Call(
        model=(body.model or "").strip(),
        verb="generate",
        prompts=prompts,
        stream=body.stream is True,
        template=body.template or None,
        options=options,
        logit_bias=read_logit_bias(body.logit_bias),
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False,
        shift=body.shift is not False,
        top_logprobs=(body.n_probs or 0) if wants_tokens else None,
        format=guided_format(body),
        warnings=(*warnings, *_warnings(body)),
        details=CompletionDetails(body.n_probs or 0, body.return_tokens is True),
    )


def _scales(body: SamplerFields) -> list[float] | None:
    """Scales of the model's adapters in order, from a list of which each entry names one by its number."""
    if body.lora is None:
        return None
    given = {entry.id: float(entry.scale) for entry in body.lora}
    return [given.get(number, 0.0) for number in range(max(given, default=-1) + 1)]


def _read_prompts(given: Any) -> tuple[Prompt, ...]:
    if given is None:
        raise InvalidRequest("prompt is required: a text, a list of tokens, or a list of such prompts")
    if isinstance(given, str):
        return (TextPrompt(given),)
    if not given or len(given) > _MAX_PROMPTS:
        raise InvalidRequest(f"prompt must hold from 1 to {_MAX_PROMPTS} prompts, not {len(given)}")
    if all(isinstance(item, int) for item in given):
        return (_read_tokens(given),)
    if any(isinstance(item, int) for item in given):
        raise Unsupported("prompt: texts and tokens cannot be mixed in one prompt yet: send all of it as one of them")
    return tuple(TextPrompt(item) if isinstance(item, str) else _read_tokens(item) for item in given)


def _read_tokens(given: list[Any]) -> TokensPrompt:
    if not given or not all(isinstance(item, int) for item in given):
        raise Unsupported("prompt: texts and tokens cannot be mixed in one prompt yet: send all of it as one of them")
    return TokensPrompt(tuple(given))


def _warnings(body: SamplerFields) -> list[str]:
    values = {name: getattr(body, name) for name in _MISSING}
    chosen = [name for name, value in values.items() if value and not (isinstance(value, int | float) and value <= 0)]
    return [f"{name} was ignored: this version cannot do this" for name in chosen]


def _endpoint(path: str, body: type[Body], parse: Any, summary: str) -> Endpoint:
    return Endpoint("POST", path, body, parse, CompletionEncoder, encode_error, summary)


ENDPOINTS = (
    _endpoint("/completion", CompletionBody, parse_completion, "Complete a text, in llama.cpp's form"),
    _endpoint("/completions", CompletionBody, parse_completion, "Complete a text, in llama.cpp's form"),
    _endpoint("/infill", InfillBody, parse_infill, "Fill a gap in a text, in llama.cpp's form"),
)
