"""Fields that OpenAI's endpoints share, turned into what Calls hold: options, thinking, function tools."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidRequest
from ...core.options import check_options
from .fields import option_fields, read_think
from .openai_bodies import NativeFields

EFFORTS: dict[str, bool | str] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
    "ultra": "max",
}
# What Jinja templates call the switch for thinking, and clients of other servers therefore send.
_SWITCHES = ("enable_thinking", "thinking")


def read_options(body: NativeFields, **more: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Options of a body, typed, and warnings. Fields of the body go before its `options`, `more` before both.

    Errors: InvalidRequest names the option.
    """
    given = {name: value for name, value in more.items() if value is not None}
    options, warnings = check_options({**(body.options or {}), **option_fields(body), **given})
    return options, tuple(warnings)


def choose_think(body: NativeFields, effort: str | None, where: str) -> bool | str | None:
    """Whether to think: `think`, else the effort, else the template's own switch; None where nothing says.

    A switch that is on is what thinking models do anyway, and others must not fail on it. Errors: InvalidRequest.
    """
    if effort is not None and effort not in EFFORTS:
        raise InvalidRequest(f"{where} must be one of {', '.join(EFFORTS)}, not {effort[:40]!r}")
    think = read_think(body.think)
    if think is not None:
        return think
    if effort is not None:
        return EFFORTS[effort]
    switches = [(body.chat_template_kwargs or {}).get(name) for name in _SWITCHES]
    return False if False in switches else None


def nest_function(tool: dict[str, Any]) -> dict[str, Any]:
    """A function as legacy bodies and /v1/responses describe it, in the form of chat completions."""
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}
