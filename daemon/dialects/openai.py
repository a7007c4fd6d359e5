"""OpenAI's /v1/chat/completions, /v1/completions and /v1/embeddings (contract section 10): bodies to Calls.

Only fields that are present override the model's own parameters. Native options are taken as extra fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest, Unsupported
from ...core.types import ChatPrompt, InfillPrompt, OutputFormat, Prompt, TextPrompt, TokensPrompt, text_message
from .bodies import Body
from .endpoint import Call, EmbedCall, Endpoint
from .fields import check_pooling, model_name, read_logit_bias
from .formats import guided_format, native_format, one_format, response_format
from .openai_bodies import ChatCompletionBody, CompletionBody, EmbeddingBody, GenerationFields
from .openai_chat_encoder import ChatCompletionEncoder, ChatDetails
from .openai_completion_encoder import CompletionEncoder
from .openai_embedding_encoder import EmbeddingEncoder
from .openai_encoder import encode_error
from .openai_fields import choose_think, nest_function, read_options
from .openai_messages import read_messages
from .tools import check_tools, choose_tools

# Each prompt of a list is a request of its own, `best_of` times over.
_MAX_TRIES = 2048
_INPUT_FORMS = "a string, a list of strings, a list of token numbers, or a list of such lists"


def parse_chat_completion(body: ChatCompletionBody) -> Call:
    """A body of /v1/chat/completions. Errors: InvalidRequest names the field."""
    call = _generation(body, "chat", body.max_completion_tokens)
    if not body.messages:
        raise InvalidRequest("[] is too short - 'messages'")
    is_legacy = bool(body.functions) and not body.tools
    offered, choice = (_legacy_tools(body)) if is_legacy else (body.tools, body.tool_choice)
    tools, policy = choose_tools(check_tools(offered), choice, body.parallel_tool_calls if not is_legacy else False)
    prompt = ChatPrompt(
        read_messages(body.messages),
        tools=tools,
        think=_think(body),
        variables=body.chat_template_kwargs or {},
        continue_last=_continues_last(body),
    )
    return msgspec.structs.replace(
        call,
        prompts=(prompt,),
        tool_policy=policy,
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        warnings=(*call.warnings, *_chat_warnings(body)),
        details=ChatDetails(has_legacy_calls=is_legacy),
    )


def parse_completion(body: CompletionBody) -> Call:
    """A body of /v1/completions. A text goes through the chat template, as the one message of a user, unless `raw` or
    `echo` ask for the text itself. Errors: InvalidRequest names the field.
    """
    call = _generation(body, "generate", None)
    best_of = body.best_of or call.num_choices
    if best_of < call.num_choices:
        raise InvalidRequest(f"best_of must be at least n, which is {call.num_choices}, not {best_of}")
    if body.stream and best_of > call.num_choices:
        raise InvalidRequest("best_of cannot be streamed: the best answer is known when all of them are there")
    prompts = _completion_prompts(body)
    if len(prompts) * best_of > _MAX_TRIES:
        raise InvalidRequest(f"prompt: {len(prompts)} prompts, each answered {best_of} times, are over {_MAX_TRIES}")
    wants_logprobs = body.logprobs is not None and body.logprobs is not False
    return msgspec.structs.replace(
        call,
        prompts=prompts,
        best_of=best_of,
        echo=body.echo is True,
        top_logprobs=int(0 if body.logprobs is True else body.logprobs or 0) if wants_logprobs else None,
    )


def parse_embedding(body: EmbeddingBody) -> EmbedCall:
    """A body of /v1/embeddings. Errors: InvalidRequest names the field."""
    encoding = body.encoding_format or "float"
    if encoding not in ("float", "base64"):
        raise InvalidRequest(f'encoding_format must be "float" or "base64", not {encoding[:40]!r}')
    options, warnings = read_options(body)
    model = model_name(body.model)
    if body.input is None or body.input == []:
        raise InvalidRequest("invalid input: input must hold a text")
    return EmbedCall(
        model=model,
        inputs=_read_inputs(body.input, "input"),
        options=options,
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False,
        dimensions=body.dimensions,
        pooling=check_pooling(body.pooling),
        warnings=warnings,
        details=encoding,
    )


def _generation(body: GenerationFields, verb: str, max_tokens: int | None) -> Call:
    """What chat completions and completions have in common."""
    limit = body.max_tokens if max_tokens is None else max_tokens
    options, warnings = read_options(body, num_predict=limit, repeat_penalty=body.repetition_penalty)
    return Call(
        model=model_name(body.model),
        verb=verb,
        stream=body.stream is True,
        template=body.template or None,
        options=options,
        logit_bias=read_logit_bias(body.logit_bias),
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False,
        shift=body.shift is not False,
        format=_format(body),
        num_choices=body.n or 1,
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        warnings=warnings,
    )


def _format(body: GenerationFields) -> OutputFormat | None:
    found = {
        "response_format": response_format(body.response_format),
        "format": native_format(body.format),
        "a field of structured output": guided_format(body),
    }
    return one_format(**found)


def _think(body: GenerationFields) -> bool | str | None:
    if body.reasoning_effort is not None or body.reasoning is None:
        return choose_think(body, body.reasoning_effort, "reasoning_effort")
    return choose_think(body, body.reasoning.effort, "reasoning.effort")


def _legacy_tools(body: ChatCompletionBody) -> tuple[list[dict[str, Any]], Any]:
    """`functions` and `function_call` as tools and the choice among them."""
    choice = body.function_call
    if isinstance(choice, dict):
        choice = {"type": "function", "function": choice}
    return [nest_function(function) for function in body.functions or []], choice


def _continues_last(body: ChatCompletionBody) -> bool:
    """Whether the answer goes on with the last message, under either of the names that vLLM has for it."""
    if body.continue_final_message and body.add_generation_prompt:
        raise InvalidRequest("continue_final_message and add_generation_prompt exclude each other: send one of them")
    return body.continue_final_message is True or body.add_generation_prompt is False


def _chat_warnings(body: ChatCompletionBody) -> list[str]:
    """What would change the answer and cannot be done. Errors: Unsupported for what no text could stand in for."""
    if any(modality != "text" for modality in body.modalities or []):
        raise Unsupported("modalities: this version answers in text only")
    warnings = []
    if body.top_logprobs and not body.logprobs:
        warnings.append("top_logprobs has no effect without logprobs: true")
    if body.web_search_options is not None:
        warnings.append("web_search_options was ignored: models here cannot search the web")
    if body.verbosity is not None:
        warnings.append("verbosity was ignored: say in the system message how long answers should be")
    if body.moderation is not None:
        warnings.append("moderation was ignored: answers are not moderated")
    return warnings


def _completion_prompts(body: CompletionBody) -> tuple[Prompt, ...]:
    given = body.prompt
    is_empty = given in (None, "", [""])
    if is_empty and not body.suffix:
        return ()
    if given == []:
        raise InvalidRequest(f"prompt must be {_INPUT_FORMS}, not an empty list")
    texts = ("",) if is_empty else _read_inputs(given, "prompt")
    if body.raw and body.template:
        raise InvalidRequest("raw sends the prompt as it is and goes with no template: leave one of them out")
    return tuple(_completion_prompt(body, text) for text in texts)


def _completion_prompt(body: CompletionBody, text: str | tuple[int, ...]) -> Prompt:
    is_raw = body.raw or body.echo or not isinstance(text, str)
    if is_raw and body.suffix:
        raise InvalidRequest("suffix goes with a prompt of text, without raw and echo")
    if not isinstance(text, str):
        return TokensPrompt(text)
    if body.suffix:
        return InfillPrompt(text, body.suffix)
    if is_raw:
        return TextPrompt(text)
    return ChatPrompt((text_message("user", text),), think=_think(body), variables=body.chat_template_kwargs or {})


def _read_inputs(value: Any, where: str) -> tuple[str | tuple[int, ...], ...]:
    """Texts, or lists of token numbers. Errors: InvalidRequest for a mixture."""
    if isinstance(value, str):
        return (value,)
    items: Sequence[Any] = value
    if all(isinstance(item, str) for item in items):
        return tuple(items)
    if all(isinstance(item, int) for item in items):
        return (tuple(items),)
    if all(isinstance(item, list) and item and not isinstance(item[0], list) for item in items):
        return tuple(tuple(item) for item in items)
    raise InvalidRequest(f"{where} must be {_INPUT_FORMS}, all of one kind and none empty")


def _endpoint(path: str, body: type[Body], parse: Any, encoder: Any, summary: str) -> Endpoint:
    return Endpoint("POST", path, body, parse, encoder, encode_error, summary)


ENDPOINTS = (
    _endpoint(
        "/v1/chat/completions",
        ChatCompletionBody,
        parse_chat_completion,
        ChatCompletionEncoder,
        "Answer a conversation, in OpenAI's form",
    ),
    _endpoint(
        "/v1/completions", CompletionBody, parse_completion, CompletionEncoder, "Complete texts, in OpenAI's form"
    ),
    _endpoint("/v1/embeddings", EmbeddingBody, parse_embedding, EmbeddingEncoder, "Vectors of texts, in OpenAI's form"),
)
