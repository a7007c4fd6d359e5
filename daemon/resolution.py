"""A Call against its Model: messages and options merged, capabilities checked. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.errors import Unsupported
from ..core.options import OPTIONS, check_options
from ..core.types import ChatPrompt, GenerateRequest, LoadOptions, Message, Prompt, Sampling, text_message
from ..modelfile.capabilities import COMPLETION, find_capabilities
from ..modelfile.model import Model
from .dialects.endpoint import Call

# What models may be able to do, but no engine of this version can yet.
_MISSING = {
    "tools": "this version of Corral cannot parse tool calls yet; leave `tools` out",
    "thinking": "this version of Corral cannot separate thinking yet; leave `think` out",
    "vision": "this version of Corral has no engine for images yet; leave `images` out",
}


class Resolved(msgspec.Struct, frozen=True):
    """What the scheduler and the runner get. `request` has id 0 until it is sent; None only loads."""

    request: GenerateRequest | None
    load: LoadOptions
    warnings: tuple[str, ...]


def resolve(call: Call, model: Model) -> Resolved:
    """Merge a call with its model: request over model over default.

    Errors: Unsupported when the model cannot do what is asked.
    """
    _check_capabilities(call, model)
    stored, _ = check_options(model.parameters)
    merged: dict[str, Any] = {**stored, **call.options}
    load = LoadOptions(
        **{name: value for name, value in merged.items() if OPTIONS[name].load and _is_chosen(name, value)}
    )
    if call.prompt is None:
        return Resolved(None, load, call.warnings)
    sampling = {name: value for name, value in merged.items() if not OPTIONS[name].load}
    if "stop" in sampling:
        sampling["stop"] = tuple(sampling["stop"])
    request = GenerateRequest(
        id=0,
        prompt=_complete(call.prompt, call, model),
        template=call.template or model.template,
        sampling=Sampling(**sampling),
        window=load.num_ctx,
        truncate=call.truncate,
        shift=call.shift,
        top_logprobs=call.top_logprobs,
        format=call.format,
        want_context=call.want_context,
        render_only=call.render_only,
    )
    return Resolved(request, load, call.warnings)


def _is_chosen(name: str, value: Any) -> bool:
    """False for the 0 that means "choose for me"."""
    return value != 0 or OPTIONS[name].low is None


def _check_capabilities(call: Call, model: Model) -> None:
    if COMPLETION not in model.capabilities:
        raise Unsupported(f'"{call.model}" does not support {call.verb}')
    if model.adapters:
        raise Unsupported(f'"{call.model}" has LoRA adapters, which this version of Corral cannot apply yet')
    able = model.capabilities
    if call.template is not None:
        # A template that comes with the request decides for this request, as the stored one does for the others.
        able = find_capabilities(model.gguf, call.template, "vision" in able)
    for need in call.needs:
        if need not in able:
            raise Unsupported(_lacks(call, model, need))
        if need in _MISSING:
            raise Unsupported(_MISSING[need])


def _lacks(call: Call, model: Model, need: str) -> str:
    can = f"/api/show lists what it can: {', '.join(model.capabilities)}"
    if need == "insert":
        can += "; a template that mentions .Suffix, in `template` or in the Modelfile, would make it"
    if need in ("tools", "insert"):
        return f"{model.name.full} does not support {need}; {can}"
    return f'"{call.model}" does not support {need}; {can}'


def _complete(prompt: Prompt, call: Call, model: Model) -> Prompt:
    """Put the model's own messages and system prompt before those of the request."""
    if not isinstance(prompt, ChatPrompt):
        return prompt
    messages = prompt.messages if prompt.context else (*model.messages, *prompt.messages)
    system = model.system if call.system is None else call.system
    starts_with_system = prompt.messages[0].role == "system"
    # An empty system text is one too: it keeps the template from putting in its own.
    if system is not None and not starts_with_system:
        messages = (text_message("system", system), *_without_system(messages, call))
    return msgspec.structs.replace(prompt, messages=messages)


def _without_system(messages: tuple[Message, ...], call: Call) -> tuple[Message, ...]:
    # A system prompt of the request replaces every one of the model's, also one among its messages.
    if call.system is None:
        return messages
    return tuple(message for message in messages if message.role != "system")
