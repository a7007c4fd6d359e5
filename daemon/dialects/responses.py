"""OpenAI's /v1/responses (contract section 10): bodies to Calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest, Unsupported
from ...core.types import ChatPrompt
from .endpoint import Call, Endpoint
from .fields import model_name, read_logit_bias
from .formats import response_format
from .openai_encoder import encode_error
from .openai_fields import choose_think, nest_function, read_options
from .responses_bodies import ResponseBody
from .responses_encoder import ID_PREFIX, ResponseEncoder
from .responses_input import read_items
from .tools import check_tools, choose_tools

_LOGPROBS = "message.output_text.logprobs"


def parse_response(body: ResponseBody) -> Call:
    """A body of /v1/responses. Errors: InvalidRequest names the field."""
    model = model_name(body.model)
    _refuse_missing(body)
    messages = read_items(body.input)
    if not messages:
        raise InvalidRequest("input must be a text or a list of items that holds a message")
    options, warnings = read_options(body, num_predict=body.max_output_tokens)
    functions, more = _read_tools(body.tools or [])
    choice, strange = _read_choice(body.tool_choice)
    tools, policy = choose_tools(check_tools(functions), choice, body.parallel_tool_calls)
    effort = body.reasoning.effort if body.reasoning else None
    prompt = ChatPrompt(
        messages,
        tools=tools,
        think=choose_think(body, effort, "reasoning.effort"),
        variables=body.chat_template_kwargs or {},
    )
    return Call(
        model=model,
        verb="chat",
        prompts=(prompt,),
        stream=body.stream is True,
        system=body.instructions,
        template=body.template or None,
        options=options,
        logit_bias=read_logit_bias(body.logit_bias),
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False and body.truncation != "disabled",
        shift=body.shift is not False,
        top_logprobs=_top_logprobs(body),
        format=response_format(body.text.format if body.text else None, "text.format"),
        tool_policy=policy,
        previous=_read_previous(body.previous_response_id),
        store=body.store is not False,
        warnings=(*warnings, *more, *strange, *_warnings(body)),
        details=body,
    )


def _refuse_missing(body: ResponseBody) -> None:
    if body.background:
        raise Unsupported("background: this version answers while the client waits; leave the field out")
    if body.conversation is not None:
        raise Unsupported("conversation: this version keeps none; go on with previous_response_id")
    if body.prompt is not None:
        raise Unsupported("prompt: this version stores no prompts; send `input` and `instructions`")
    if body.truncation not in (None, "auto", "disabled"):
        raise InvalidRequest(f'truncation must be "auto" or "disabled", not {body.truncation[:40]!r}')


def _read_tools(tools: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Functions in the form of chat completions, and a warning for every tool that OpenAI's servers would run."""
    functions: list[dict[str, Any]] = []
    warnings: list[str] = []
    for index, tool in enumerate(tools):
        kind = tool.get("type", "function")
        if kind == "function":
            functions.append(tool if "function" in tool else nest_function(tool))
        else:
            warnings.append(f"tools[{index}] was ignored: {repr(kind)[:40]} is not a function that the client runs")
    return functions, warnings


def _read_choice(choice: Any) -> tuple[Any, list[str]]:
    """A choice among functions; one of a tool that does not exist here leaves it to the model."""
    kind = choice.get("type") if isinstance(choice, dict) else "function"
    if kind in ("function", "allowed_tools"):
        return choice, []
    return None, [f"tool_choice was ignored: {repr(kind)[:40]} is not a function that the client runs"]


def _read_previous(response_id: str | None) -> str | None:
    return response_id.removeprefix(ID_PREFIX) if response_id else None


def _top_logprobs(body: ResponseBody) -> int | None:
    if body.top_logprobs or _LOGPROBS in (body.include or []):
        return body.top_logprobs or 0
    return None


def _warnings(body: ResponseBody) -> list[str]:
    """Fields that would change the answer, and cannot."""
    ignored = {
        "text.verbosity": body.text and body.text.verbosity,
        "max_tool_calls": body.max_tool_calls,
        "context_management": body.context_management,
        "moderation": body.moderation,
    }
    return [f"{name} was ignored: this version cannot do this" for name, value in ignored.items() if value is not None]


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/responses",
        ResponseBody,
        parse_response,
        ResponseEncoder,
        encode_error,
        "Answer a conversation as a list of items, in OpenAI's form",
    ),
)
