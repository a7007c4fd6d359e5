"""The one table of generation options: what requests, Modelfiles and `/set parameter` may name, and of what type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from .errors import InvalidRequest


class Kind(StrEnum):
    """Types, by the names that error messages use."""

    INT = "int"
    FLOAT = "float32"
    BOOL = "bool"
    STRINGS = "string list"
    FLOATS = "float32 list"


class OptionRow(NamedTuple):
    """`load` options are part of LoadOptions, the others of Sampling, each under the same name.

    `low` and `high` bound what an engine can bear; 0 is always allowed where it means "choose for me".
    """

    kind: Kind
    load: bool = False
    low: int | None = None
    high: int | None = None


OPTIONS: dict[str, OptionRow] = {
    "num_predict": OptionRow(Kind.INT),
    "num_keep": OptionRow(Kind.INT),
    "seed": OptionRow(Kind.INT),
    "temperature": OptionRow(Kind.FLOAT),
    "top_k": OptionRow(Kind.INT),
    "top_p": OptionRow(Kind.FLOAT),
    "min_p": OptionRow(Kind.FLOAT),
    "typical_p": OptionRow(Kind.FLOAT),
    "repeat_last_n": OptionRow(Kind.INT),
    "repeat_penalty": OptionRow(Kind.FLOAT),
    "presence_penalty": OptionRow(Kind.FLOAT),
    "frequency_penalty": OptionRow(Kind.FLOAT),
    "min_keep": OptionRow(Kind.INT),
    "top_n_sigma": OptionRow(Kind.FLOAT),
    "dynatemp_range": OptionRow(Kind.FLOAT),
    "dynatemp_exponent": OptionRow(Kind.FLOAT),
    "xtc_probability": OptionRow(Kind.FLOAT),
    "xtc_threshold": OptionRow(Kind.FLOAT),
    "dry_multiplier": OptionRow(Kind.FLOAT),
    "dry_base": OptionRow(Kind.FLOAT),
    "dry_allowed_length": OptionRow(Kind.INT),
    "dry_penalty_last_n": OptionRow(Kind.INT),
    "dry_sequence_breakers": OptionRow(Kind.STRINGS),
    "mirostat": OptionRow(Kind.INT, low=1, high=2),
    "mirostat_tau": OptionRow(Kind.FLOAT),
    "mirostat_eta": OptionRow(Kind.FLOAT),
    "stop": OptionRow(Kind.STRINGS),
    "min_tokens": OptionRow(Kind.INT),
    "ignore_eos": OptionRow(Kind.BOOL),
    "cache_prompt": OptionRow(Kind.BOOL),
    "draft_num_predict": OptionRow(Kind.INT),
    "lora_scales": OptionRow(Kind.FLOATS),
    "num_ctx": OptionRow(Kind.INT, load=True, low=8, high=1 << 30),
    "num_batch": OptionRow(Kind.INT, load=True, low=32, high=1 << 16),
    "num_gpu": OptionRow(Kind.INT, load=True),
    "main_gpu": OptionRow(Kind.INT, load=True),
    "num_thread": OptionRow(Kind.INT, load=True, low=1, high=512),
    "tensor_split": OptionRow(Kind.FLOATS, load=True),
    "use_mmap": OptionRow(Kind.BOOL, load=True),
    "use_mlock": OptionRow(Kind.BOOL, load=True),
}

# Options that Ollama once had. Old Modelfiles and clients still name them; they change nothing.
RETIRED = frozenset(
    "penalize_newline low_vram f16_kv logits_all vocab_only tfs_z numa num_gqa rope_frequency_base "
    "rope_frequency_scale".split()
)

# What counts in requests only: Ollama skips these in Modelfiles, where old ones still name them (contract section 14).
SKIPPED_IN_MODELFILES = frozenset("use_mlock mirostat mirostat_tau mirostat_eta".split())

_INT_LIMIT = 1 << 63
_FLOAT32_MAX = 3.4028234663852886e38


def check_options(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Check option values as JSON gives them.

    Returns the known ones, typed, without nulls, and a warning for each name that is not an option.
    Errors: InvalidRequest names the option and its type.
    """
    typed: dict[str, Any] = {}
    warnings: list[str] = []
    for name, value in values.items():
        row = OPTIONS.get(name)
        if row is None:
            warnings.append(_unknown(name))
        elif value is not None:
            typed[name] = _check(name, row.kind, value)
            _check_range(name, row, typed[name])
    return typed, warnings


def parse_option(name: str, texts: list[str]) -> Any:
    """Read an option from text, as Modelfiles and the REPL give it; the last text wins, but `stop` gathers all.

    Errors: ValueError says which type was expected.
    """
    kind = OPTIONS[name].kind
    if kind is Kind.STRINGS:
        return list(texts)
    text = texts[-1].strip()
    try:
        if kind is Kind.FLOATS:
            return [_parse_float(item) for item in text.split(",")]
        if kind is Kind.INT:
            return _parse_int(text)
        if kind is Kind.FLOAT:
            return _parse_float(text)
    except ValueError:
        raise ValueError(f"{name} takes {kind.value}, not {text!r}") from None
    # Go's strconv.ParseBool takes these spellings and no others.
    lowered = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}.get(text.lower())
    if lowered is None:
        raise ValueError(f"{name} takes true or false, not {text!r}")
    return lowered


def nearest(word: str, known: list[str]) -> str | None:
    """The known word closest to a misspelt one, if one is close."""
    import difflib  # here: only mistakes pay for it

    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if found:
        return found[0]
    starts = [candidate for candidate in known if word and candidate.startswith(word)]
    return starts[0] if starts else None


def _unknown(name: str) -> str:
    shown = name[:60]
    if name in RETIRED:
        return f'option "{shown}" has no effect'
    near = nearest(shown, list(OPTIONS))
    hint = f'; did you mean "{near}"?' if near else ""
    return f'unknown option "{shown}" was ignored{hint}'


def _check(name: str, kind: Kind, value: Any) -> Any:
    if kind is Kind.INT and isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) < _INT_LIMIT and value == int(value):
            return int(value)
    elif kind is Kind.FLOAT and _is_float(value):
        return float(value)
    elif kind is Kind.BOOL and isinstance(value, bool):
        return value
    elif kind is Kind.STRINGS:
        if isinstance(value, str):
            return [value]
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
    elif kind is Kind.FLOATS and isinstance(value, list) and all(_is_float(item) for item in value):
        return [float(item) for item in value]
    raise InvalidRequest(f'option "{name}" must be of type {kind.value}, not {_shown(value)}')


def _is_float(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _FLOAT32_MAX


def _check_range(name: str, row: OptionRow, value: Any) -> None:
    if row.low is not None and row.high is not None and value != 0 and not row.low <= value <= row.high:
        raise InvalidRequest(f'option "{name}" must be from {row.low} to {row.high}, or 0 for the default, not {value}')


def _shown(value: Any) -> str:
    return repr(value)[:40]


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text) or abs(value := int(text)) >= _INT_LIMIT:
        raise ValueError("not an integer of 64 bits")
    return value


def _parse_float(text: str) -> float:
    # Python reads "1_000" and digits of other scripts too, which JSON and Go do not.
    if "_" in text or not text.isascii() or not abs(value := float(text)) <= _FLOAT32_MAX:
        raise ValueError("not a finite number")
    return value
