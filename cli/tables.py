"""Plain aligned tables, as Ollama prints them: no lines, no colour, so that they can be cut and searched."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from .formats import format_size, format_until, format_when

_GAP = "    "
_ID_DIGITS = 12


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; the last one is not padded. Ends in a newline."""
    lines = [header, *rows] if header else list(rows)
    if not lines:
        return ""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    padded = (
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )
    return "".join(padded)


def installed_table(models: Sequence[dict[str, Any]], now: datetime) -> str:
    """The models of /api/tags."""
    rows = [
        (
            str(model["name"]),
            str(model.get("digest", ""))[:_ID_DIGITS],
            format_size(model["size"]) if model.get("size") else "-",
            format_when(str(model.get("modified_at", "")), now),
        )
        for model in models
    ]
    return format_table(("NAME", "ID", "SIZE", "MODIFIED"), rows)


def loaded_table(models: Sequence[dict[str, Any]], now: datetime) -> str:
    """The models of /api/ps."""
    rows = [
        (
            str(model["name"]),
            str(model.get("digest", ""))[:_ID_DIGITS],
            format_size(model.get("size", 0)),
            _processor(model.get("size", 0), model.get("size_vram", 0)),
            str(model.get("context_length", "")),
            format_until(str(model.get("expires_at", "")), now),
        )
        for model in models
    ]
    return format_table(("NAME", "ID", "SIZE", "PROCESSOR", "CONTEXT", "UNTIL"), rows)


def _processor(size_bytes: int, size_vram_bytes: int) -> str:
    if size_vram_bytes == 0:
        return "100% CPU"
    if size_vram_bytes == size_bytes:
        return "100% GPU"
    if size_vram_bytes > size_bytes:
        return "Unknown"
    cpu_percent = round((size_bytes - size_vram_bytes) / size_bytes * 100)
    return f"{cpu_percent}%/{100 - cpu_percent}% CPU/GPU"
