"""A Call against its Model: messages and options merged, capabilities checked. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.errors import InvalidRequest, Unsupported
from ..core.options import OPTIONS, check_options
from ..core.types import (
    ChatPrompt,
    EmbedPair,
    EmbedRequest,
    GenerateRequest,
    Image,
    InfillPrompt,
    LoadOptions,
    Message,
    Prompt,
    Sampling,
    text_message,
)
from ..modelfile.capabilities import COMPLETION, INSERT, RERANK, THINKING, TOOLS, VISION, find_capabilities
from ..modelfile.model import Model
from .dialects.endpoint import AnyCall, Call, EmbedCall

Request = GenerateRequest | EmbedRequest


class Resolved(msgspec.Struct, frozen=True):
    """What the scheduler and the runner get. `requests` have id 0 until they are sent; none means only to load."""

    requests: tuple[Request, ...]
    load: LoadOptions
    warnings: tuple[str, ...]


def resolve(call: AnyCall, model: Model) -> Resolved:
    """Merge a call with its model: request over model over default.

    Errors: Unsupported when the model cannot do what is asked.
    """
    stored, _ = check_options(model.parameters)
    merged: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in {**stored, **call.options}.items()
    }
    load = LoadOptions(
        **{name: value for name, value in merged.items() if OPTIONS[name].load and _is_chosen(name, value)}
    )
    if isinstance(call, EmbedCall):
        return Resolved(_embed_requests(call, model, load), load, call.warnings)
    able = _check_capabilities(call, model)
    sampling = {name: value for name, value in merged.items() if not OPTIONS[name].load}
    sampling["logit_bias"] = call.logit_bias
    num_scales = len(sampling.get("lora_scales") or ())
    if num_scales > len(model.adapters):
        raise InvalidRequest(
            f'lora_scales: {num_scales} scales for the {len(model.adapters)} adapters of "{call.model}"'
        )
    request = _generate_request(call, model, Sampling(**sampling), load)
    prompts = [_complete(prompt, call, model, able) for prompt in call.prompts]
    requests = tuple(
        msgspec.structs.replace(request, prompt=prompt, sampling=_vary(request.sampling, attempt))
        for prompt in prompts
        for attempt in range(max(call.num_choices, call.best_of))
    )
    return Resolved(requests, load, call.warnings)


def _generate_request(call: Call, model: Model, sampling: Sampling, load: LoadOptions) -> GenerateRequest:
    """What all requests of a call have in common."""
    # The best of several tries is told by their log-probabilities.
    top_logprobs = 0 if call.top_logprobs is None and call.best_of > call.num_choices else call.top_logprobs
    return GenerateRequest(
        id=0,
        prompt=ChatPrompt(()),
        template=call.template or model.template,
        sampling=sampling,
        window=load.num_ctx,
        truncate=call.truncate,
        shift=call.shift,
        top_logprobs=top_logprobs,
        format=call.format,
        want_context=call.want_context,
        render_only=call.render_only,
        tool_policy=call.tool_policy,
        echo=call.echo,
        adapters=tuple(map(str, model.adapters)),
        projector=str(model.projector) if model.projector else None,
    )


def _embed_requests(call: EmbedCall, model: Model, load: LoadOptions) -> tuple[EmbedRequest, ...]:
    if not call.inputs:
        return ()
    if model.adapters:
        raise Unsupported(f'"{call.model}" has LoRA adapters, with which this version makes no embeddings yet')
    inputs: tuple[Any, ...] = call.inputs
    if call.query is not None:
        ranks = RERANK in model.capabilities
        inputs = tuple(EmbedPair(call.query, str(text)) for text in inputs) if ranks else (call.query, *inputs)
    elif RERANK in model.capabilities:
        raise Unsupported(f'"{call.model}" ranks documents and makes no vectors: send them to /v1/rerank')
    request = EmbedRequest(
        id=0,
        inputs=inputs,
        window=load.num_ctx,
        truncate=call.truncate,
        normalize=call.normalize,
        dimensions=call.dimensions,
        pooling=call.pooling,
    )
    return (request,)


def _vary(sampling: Sampling, attempt: int) -> Sampling:
    """Another seed for each choice of a call that has several and names one."""
    if not attempt or sampling.seed < 0:
        return sampling
    return msgspec.structs.replace(sampling, seed=sampling.seed + attempt)


def _is_chosen(name: str, value: Any) -> bool:
    """False for the 0 that means "choose for me"."""
    return value != 0 or OPTIONS[name].low is None


def _check_capabilities(call: Call, model: Model) -> tuple[str, ...]:
    """What the model can do in this call. Errors: Unsupported for what it is asked beyond that."""
    if COMPLETION not in model.capabilities:
        raise Unsupported(f'"{call.model}" does not support {call.verb}')
    able = model.capabilities
    if call.template is not None:
        # A template that comes with the request decides for this request, as the stored one does for the others.
        able = find_capabilities(model.gguf, call.template, VISION in able)
    for need in _needs(call):
        if need not in able:
            raise Unsupported(_lacks(call, model, need))
    return able


def _needs(call: Call) -> list[str]:
    """Capabilities that the call's prompts ask for."""
    needs = []
    for prompt in call.prompts:
        if isinstance(prompt, InfillPrompt):
            needs.append(INSERT)
        elif isinstance(prompt, ChatPrompt):
            # Calls that must come are forced by a grammar, and any model can be told of tools in words.
            if prompt.tools and not call.tool_policy.is_required:
                needs.append(TOOLS)
            if prompt.think and not call.think_optional:
                needs.append(THINKING)
            if any(isinstance(part, Image) for message in prompt.messages for part in message.parts):
                needs.append(VISION)
    return needs


def _lacks(call: Call, model: Model, need: str) -> str:
    can = f"/api/show lists what it can: {', '.join(model.capabilities)}"
    if need == INSERT:
        can += "; a template that mentions .Suffix, in `template` or in the Modelfile, would make it"
    if need in (TOOLS, INSERT):
        return f"{model.name.full} does not support {need}; {can}"
    return f'"{call.model}" does not support {need}; {can}'


def _complete(prompt: Prompt, call: Call, model: Model, able: tuple[str, ...]) -> Prompt:
    """Put the model's own messages and system prompt before those of the request, and settle whether it thinks."""
    if not isinstance(prompt, ChatPrompt):
        return prompt
    messages = prompt.messages if prompt.context else (*_own_messages(call, model), *prompt.messages)
    system = model.system if call.system is None else call.system
    # System messages of the request go before the model's system prompt; the request's own stands before them.
    is_replaced = call.system is None and bool(prompt.messages) and prompt.messages[0].role == "system"
    # An empty system text is one too: it keeps the template from putting in its own.
    if system is not None and not is_replaced:
        messages = (text_message("system", system), *messages)
    think = prompt.think
    if THINKING not in able:
        think = None
    elif think is None:
        think = True
    return msgspec.structs.replace(prompt, messages=messages, think=think)


def _own_messages(call: Call, model: Model) -> tuple[Message, ...]:
    # A system prompt of the request replaces every one of the model's, also one among its messages.
    if call.system is None:
        return model.messages
    return tuple(message for message in model.messages if message.role != "system")
