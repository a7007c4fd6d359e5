"""Server-sent events, the form in which every dialect but Ollama's streams (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from typing import Any

import msgspec

CONTENT_TYPE = "text/event-stream"
# A comment: clients skip it, and gateways see that the connection lives.
PING = b": ping\n\n"


def sse(value: Any, name: str | None = None) -> bytes:
    """One event whose data is JSON."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(value) + b"\n\n"
