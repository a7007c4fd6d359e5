"""What /api/show says of a model, as text for people: `corral show` and the chat's /show print from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .tables import format_table

_LICENSE_LINES = 2
_INDENT = "  "


def describe(shown: dict[str, Any], verbose: bool = False) -> str:
    """Sections Model, Capabilities, Parameters, System, License; verbose adds Metadata and Tensors."""
    sections = [
        _section("Model", _model_rows(shown)),
        _section("Capabilities", [(name,) for name in shown.get("capabilities") or []]),
        _section("Parameters", [_parameter_row(line) for line in shown.get("parameters", "").splitlines()]),
    ]
    if verbose:
        info = shown.get("model_info") or {}
        sections += [
            _section("Metadata", [(key, _short(value)) for key, value in sorted(info.items())]),
            _section("Tensors", [_tensor_row(tensor) for tensor in shown.get("tensors") or []]),
        ]
    sections += [
        _section("System", _text_rows(shown.get("system", ""))),
        _section("License", _text_rows(_license_head(shown.get("license", "")))),
    ]
    return "\n".join(section for section in sections if section)


def _section(title: str, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    body = format_table((), rows)
    return f"{_INDENT}{title}\n" + "".join(f"{_INDENT * 2}{line}\n" for line in body.splitlines())


def _model_rows(shown: dict[str, Any]) -> list[tuple[str, str]]:
    info, details = shown.get("model_info") or {}, shown.get("details") or {}
    architecture = str(info.get("general.architecture", details.get("family", "")))
    values = {
        "architecture": architecture,
        "parameters": details.get("parameter_size", ""),
        "context length": info.get(f"{architecture}.context_length", ""),
        "embedding length": info.get(f"{architecture}.embedding_length", ""),
        "quantization": details.get("quantization_level", ""),
        "parent": details.get("parent_model", ""),
        "requires": shown.get("requires", ""),
    }
    return [(name, str(value)) for name, value in values.items() if value]


def _parameter_row(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" ")
    return name, value.strip()


def _tensor_row(tensor: dict[str, Any]) -> tuple[str, str, str]:
    return str(tensor.get("name", "")), str(tensor.get("type", "")), str(tensor.get("shape", ""))


def _text_rows(text: str) -> list[tuple[str]]:
    return [(line.rstrip(),) for line in text.strip().splitlines()]


def _license_head(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    more = ["..."] if len(lines) > _LICENSE_LINES else []
    return "\n".join(lines[:_LICENSE_LINES] + more)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list) and len(value) > 3:
        return f"[{', '.join(str(item) for item in value[:3])}, ... {len(value)} in all]"
    return str(value)
