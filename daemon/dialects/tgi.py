"""TGI's /generate, /generate_stream and / (contract section 16): bodies to Calls. Inputs go to the model as is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest
from ...core.types import TextPrompt
from .endpoint import Call, Endpoint
from .formats import guided_format
from .openai_fields import read_options
from .tgi_bodies import GenerateBody, Parameters
from .tgi_encoder import GenerateDetails, GenerateEncoder, encode_error, find_status

_LIMITS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "max_new_tokens": ("at least 1", lambda value: value >= 1),
    "temperature": ("above 0", lambda value: value > 0),
    "top_k": ("at least 1", lambda value: value >= 1),
    "top_p": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "typical_p": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "seed": ("at least 0", lambda value: value >= 0),
    "repetition_penalty": ("above 0", lambda value: value > 0),
    "frequency_penalty": ("from -2 to 2", lambda value: -2 <= value <= 2),
    "best_of": ("from 1 to 128", lambda value: 1 <= value <= 128),
    "truncate": ("at least 1", lambda value: value >= 1),
}
# With one of these, TGI samples also where do_sample is false.
_SAMPLERS = ("temperature", "top_k", "top_p", "typical_p")


def parse_generate(body: GenerateBody) -> Call:
    """A body of /generate. Errors: InvalidRequest names the field."""
    warnings = ["stream was ignored: /generate_stream streams"] if body.stream else []
    return _call(body, stream=False, is_list=False, warnings=warnings)


def parse_stream(body: GenerateBody) -> Call:
    """A body of /generate_stream. Errors: InvalidRequest names the field."""
    return _call(body, stream=True, is_list=False)


def parse_either(body: GenerateBody) -> Call:
    """A body of /, whose `stream` says which of the two is meant. Errors: InvalidRequest names the field."""
    return _call(body, stream=body.stream is True, is_list=True)


def _call(body: GenerateBody, stream: bool, is_list: bool, warnings: list[str] | None = None) -> Call:
    given = body.parameters or Parameters()
    if not body.inputs:
        raise InvalidRequest("inputs cannot be empty: send the text that the model goes on with")
    _check(given, stream)
    options, more = read_options(body, **_options(body, given))
    wants_details = given.details is True
    wants_tokens = wants_details or stream
    return Call(
        model=(body.model or "").strip(),
        verb="generate",
        prompts=(TextPrompt(body.inputs),),
        stream=stream,
        options=options,
        keep_alive=parse_keep_alive(body.keep_alive),
        shift=body.shift is not False,
        top_logprobs=(given.top_n_tokens or 0) if wants_tokens else None,
        format=guided_format(given),
        best_of=given.best_of or 1,
        echo=wants_details and given.decoder_input_details is True,
        warnings=(*more, *(warnings or ()), *_warnings(given)),
        details=GenerateDetails(
            inputs=body.inputs,
            has_details=wants_details,
            has_full_text=given.return_full_text is True,
            is_list=is_list,
            num_top=given.top_n_tokens or 0,
            seed=given.seed if _samples(given) else None,
        ),
    )


def _check(given: Parameters, stream: bool) -> None:
    for name, (words, allows) in _LIMITS.items():
        value = getattr(given, name)
        if value is not None and not allows(value):
            raise InvalidRequest(f"parameters.{name} must be {words}, not {value}")
    if (given.best_of or 1) > 1:
        if stream:
            raise InvalidRequest("parameters.best_of cannot be streamed: the best answer is known when all are there")
        if not _samples(given):
            raise InvalidRequest("parameters.best_of needs sampling: without do_sample all answers are the same")
    if stream and given.decoder_input_details:
        raise InvalidRequest("parameters.decoder_input_details cannot be streamed: send it to /generate")


def _options(body: GenerateBody, given: Parameters) -> dict[str, Any]:
    """Native options of the parameters. Without sampling the likeliest token is taken, as at temperature 0."""
    temperature = given.temperature
    if temperature is None and body.temperature is None and not _samples(given):
        temperature = 0
    return {
        "num_predict": given.max_new_tokens,
        "temperature": temperature,
        "top_k": given.top_k,
        "top_p": given.top_p,
        "typical_p": given.typical_p,
        "seed": given.seed,
        "stop": given.stop or None,
        "repeat_penalty": given.repetition_penalty,
        "frequency_penalty": given.frequency_penalty,
    }


def _samples(given: Parameters) -> bool:
    return given.do_sample is True or any(getattr(given, name) is not None for name in _SAMPLERS)


def _warnings(given: Parameters) -> list[str]:
    """Parameters that would change the answer, and cannot."""
    ignored = [name for name in ("truncate", "watermark", "adapter_id") if getattr(given, name)]
    return [f"parameters.{name} was ignored: this version cannot do this" for name in ignored]


def _endpoint(path: str, parse: Callable[[GenerateBody], Call], summary: str) -> Endpoint:
    return Endpoint("POST", path, GenerateBody, parse, GenerateEncoder, encode_error, summary, find_status)


ENDPOINTS = (
    _endpoint("/generate", parse_generate, "Complete a text, in TGI's form"),
    _endpoint("/generate_stream", parse_stream, "Complete a text as a stream of tokens, in TGI's form"),
    _endpoint("/", parse_either, "Complete a text, whole or as a stream, in TGI's form"),
)
