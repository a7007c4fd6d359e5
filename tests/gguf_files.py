"""Builds small GGUF files for tests, good ones and, through its pieces, bad ones. Shares no code with the reader."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

F32, Q4_0 = 0, 2
UINT8, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = 0, 4, 5, 6, 7, 8, 9, 10, 11, 12
_CODES = {UINT8: "B", UINT32: "I", INT32: "i", FLOAT32: "f", BOOL: "?", UINT64: "Q", INT64: "q", FLOAT64: "d"}


class Typed(NamedTuple):
    """A metadata value with GGUF's type given, where the Python type says too little."""

    kind: int
    value: Any


def build_gguf(metadata: Mapping[str, Any], tensors: Mapping[str, tuple[Sequence[int], int, bytes]]) -> bytes:
    """A GGUF v3 file. `tensors`: name -> (shape in GGUF order, ggml type id, data); data is padded to the alignment.

    Metadata values: str, bool, int (uint32, int32 when negative, 64 bits when large), float (float32), bytes (a string
    that need not be UTF-8), a list of one of these (possibly of lists), or Typed.
    """
    alignment = metadata.get("general.alignment", 32)
    infos, data = b"", b""
    for name, (shape, kind, content) in tensors.items():
        infos += tensor_info(name, shape, kind, len(data))
        data += content + bytes(-len(content) % alignment)
    head = header(len(tensors), len(metadata)) + b"".join(pair(key, value) for key, value in metadata.items()) + infos
    return head + bytes(-len(head) % alignment) + data


def header(num_tensors: int, num_pairs: int, version: int = 3) -> bytes:
    """Magic number, version and counts."""
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_pairs)


def pair(key: str | bytes, value: Any) -> bytes:
    """One metadata pair."""
    kind = _kind(value)
    return text(key) + struct.pack("<I", kind) + _value(kind, value)


def tensor_info(name: str | bytes, shape: Sequence[int], kind: int, offset: int) -> bytes:
    """What the header says of one tensor."""
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def text(value: str | bytes) -> bytes:
    """A string with its length."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def _kind(value: Any) -> int:
    if isinstance(value, Typed):
        return value.kind
    if isinstance(value, str | bytes):
        return STRING
    if isinstance(value, list):
        return ARRAY
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return FLOAT32
    if -(1 << 31) <= value < 1 << 32:
        return INT32 if value < 0 else UINT32
    return INT64 if value < 0 else UINT64


def _value(kind: int, value: Any) -> bytes:
    content = value.value if isinstance(value, Typed) else value
    if kind == STRING:
        return text(content)
    if kind != ARRAY:
        return struct.pack("<" + _CODES[kind], content)
    inner = _kind(content[0]) if content else UINT32
    return struct.pack("<IQ", inner, len(content)) + b"".join(_value(inner, item) for item in content)
