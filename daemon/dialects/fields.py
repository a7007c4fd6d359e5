"""Fields that several dialects have, checked and turned into what Calls hold."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidRequest
from ...core.options import OPTIONS

POOLINGS = ("mean", "cls", "last")
THINK_LEVELS = ("high", "medium", "low", "max")
_MAX_BIAS = 100.0


def model_name(*names: str | None) -> str:
    """A model's name as the client wrote it: the first that is there. Errors: InvalidRequest when none is."""
    for name in names:
        if name and name.strip():
            return name.strip()
    raise InvalidRequest("model is required")


def read_logit_bias(value: Any) -> tuple[tuple[int, float], ...]:
    """`logit_bias` as OpenAI has it, {"token number": bias}, or as llama.cpp has it, [[token, bias]]; false forbids.

    Errors: InvalidRequest names the entry.
    """
    if value is None:
        return ()
    entries = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise InvalidRequest("logit_bias must be an object of token numbers and biases")
    return tuple(_read_bias(entry) for entry in entries)


def _read_bias(entry: Any) -> tuple[int, float]:
    try:
        token, bias = entry
        number = int(token)
        amount = float("-inf") if bias is False else float(bias)
    except (TypeError, ValueError):
        raise InvalidRequest(f"logit_bias: {repr(entry)[:60]} is not a token number and a bias") from None
    if isinstance(token, bool | float) or bias is True or number < 0 or not (abs(amount) <= _MAX_BIAS or bias is False):
        raise InvalidRequest(f"logit_bias: {repr(entry)[:60]}: a bias is from -{_MAX_BIAS:g} to {_MAX_BIAS:g}")
    return number, amount


def check_pooling(value: str | None) -> str | None:
    """How the vectors of a text's tokens become one. Errors: InvalidRequest."""
    if value is not None and value not in POOLINGS:
        raise InvalidRequest(f"pooling must be one of {', '.join(POOLINGS)}, not {value[:40]!r}")
    return value


def option_fields(body: Any) -> dict[str, Any]:
    """Native options that a body of another dialect holds as fields of its own."""
    return {name: value for name in OPTIONS if (value := getattr(body, name, None)) is not None}


def read_think(value: Any) -> bool | str | None:
    """`think`: None where it is absent. Errors: InvalidRequest lists what it may be."""
    if value is None or isinstance(value, bool) or value in THINK_LEVELS:
        think: bool | str | None = value
        return think
    raise InvalidRequest(f"think must be true, false, {', '.join(THINK_LEVELS)}, not {repr(value)[:40]}")
