"""Reads the header of GGUF files (v2 and v3, little-endian): metadata and tensors, never weights. Each count is checked
against what the rest of the file could hold before anything is looped over or allocated: a lie costs nothing."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..core.errors import InvalidGGUF, StoreFailed
from .ggml import FILE_TYPES, TENSOR_TYPES, UNKNOWN_FILE_TYPE
from .gguf_cursor import Cursor

MAGIC = b"GGUF"
DEFAULT_ALIGNMENT = 32
# Longer arrays stay in the file. Numbers may be a value for each layer, which the properties below need.
KEPT_TEXTS = 64
KEPT_NUMBERS = 512

_VERSIONS = (2, 3)
_MAX_PAIRS = 1 << 14
_MAX_TENSORS = 1 << 17
_MAX_KEY_BYTES = 65535  # as the specification has it
_MAX_NAME_BYTES = 1024
_MAX_TEXT_BYTES = 64 << 20
_MAX_DEPTH = 3
_MAX_ELEMENTS = 1 << 63
_MIN_ALIGNMENT, _MAX_ALIGNMENT = 8, 1 << 20

_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# The fewest bytes that a value of each type takes: a string has its length, an array its type and length.
_MIN_BYTES = {kind: struct.calcsize(f"<{code}") for kind, code in _NUMBERS.items()} | {_STRING: 8, _ARRAY: 12}
_MIN_PAIR_BYTES = 8 + 1 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` in GGUF's order, the row length first; `offset` in bytes from GGUF.data_offset."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ArrayRef:
    """A long array that was left in the file: GGUF's id of the element type, number of elements, byte position."""

    kind: int
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class GGUF:
    """A header. Counts that the file does not give, or gives as something else than a number, are 0."""

    version: int
    metadata: dict[str, Any]
    tensors: tuple[Tensor, ...]
    alignment: int
    data_offset: int
    file_bytes: int

    @property
    def architecture(self) -> str:
        """general.architecture, "unknown" where absent."""
        value = self.metadata.get("general.architecture")
        return value if isinstance(value, str) and value else "unknown"

    @property
    def parameter_count(self) -> int:
        """Elements of all tensors together."""
        return sum(prod(tensor.shape) for tensor in self.tensors)

    @property
    def file_type(self) -> str:
        """The quantization by name, "unknown" where the file does not say."""
        value = self.metadata.get("general.file_type")
        return FILE_TYPES.get(value, UNKNOWN_FILE_TYPE) if isinstance(value, int) else UNKNOWN_FILE_TYPE

    @property
    def context_length(self) -> int:
        """The window that the model was trained for, in tokens."""
        return self._count("context_length")

    @property
    def embedding_length(self) -> int:
        return self._count("embedding_length")

    @property
    def block_count(self) -> int:
        return self._count("block_count")

    @property
    def feed_forward_length(self) -> int:
        """Width of the feed-forward layers; the largest where layers differ."""
        return self._count("feed_forward_length")

    @property
    def head_count(self) -> int:
        """Attention heads; the largest number where layers differ."""
        return self._count("attention.head_count")

    @property
    def head_count_kv(self) -> int:
        """Heads of keys and values; the largest number where layers differ, head_count where absent."""
        return self._count("attention.head_count_kv") or self.head_count

    @property
    def key_length(self) -> int:
        """Elements of a key of one head."""
        return self._count("attention.key_length") or self._head_length()

    @property
    def value_length(self) -> int:
        """Elements of a value of one head."""
        return self._count("attention.value_length") or self._head_length()

    @property
    def chat_template(self) -> str | None:
        """The Jinja template that the file carries."""
        value = self.metadata.get("tokenizer.chat_template")
        return value if isinstance(value, str) else None

    @property
    def pooling_type(self) -> int | None:
        """llama.cpp's id of the pooling, which embedding models have."""
        value = self.arch_value("pooling_type")
        return value if isinstance(value, int) else None

    def arch_value(self, suffix: str) -> Any:
        """The metadata value `ARCHITECTURE.suffix`, None where absent."""
        return self.metadata.get(f"{self.architecture}.{suffix}")

    def _count(self, suffix: str) -> int:
        value = self.arch_value(suffix)
        values = value if isinstance(value, list) else [value]
        counts = [item for item in values if isinstance(item, int) and not isinstance(item, bool)]
        return max(0, *counts) if counts else 0

    def _head_length(self) -> int:
        return self.embedding_length // self.head_count if self.head_count else 0


def read_gguf(path: Path) -> GGUF:
    """The header of a file, with every tensor checked to lie within the file.

    Errors: InvalidGGUF says what is wrong and at which byte, never the path; StoreFailed when the file cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            return _read_header(Cursor(file))
    except OSError as error:
        raise _unreadable(error) from None


def read_array(path: Path, ref: ArrayRef) -> list[Any]:
    """The elements of an array that read_gguf left in the file. Errors: InvalidGGUF, StoreFailed."""
    try:
        with path.open("rb", buffering=0) as file:
            return _elements(Cursor(file, ref.offset), ref.kind, ref.count, 1)
    except OSError as error:
        raise _unreadable(error) from None


def read_text(path: Path, ref: ArrayRef, index: int) -> str:
    """One element of an array of strings, the others passed over. Errors: InvalidGGUF, StoreFailed."""
    if ref.kind != _STRING:
        raise InvalidGGUF(f"a list in the metadata has elements of type {ref.kind}: strings are wanted")
    try:
        with path.open("rb", buffering=0) as file:
            cursor = Cursor(file, ref.offset)
            cursor.skip_texts(index, "a list in the metadata")
            return str(_elements(cursor, _STRING, 1, 1)[0])
    except OSError as error:
        raise _unreadable(error) from None


def _read_header(cursor: Cursor) -> GGUF:
    version = _read_version(cursor)
    num_tensors = cursor.u64("the number of tensors")
    num_pairs = cursor.u64("the number of metadata pairs")
    needed = num_pairs * _MIN_PAIR_BYTES + num_tensors * _MIN_TENSOR_BYTES
    cursor.require(needed, f"a header of {num_pairs} metadata pairs and {num_tensors} tensors")
    if num_pairs > _MAX_PAIRS or num_tensors > _MAX_TENSORS:
        raise InvalidGGUF(
            f"the GGUF file has {num_pairs} metadata pairs and {num_tensors} tensors; "
            f"at most {_MAX_PAIRS} and {_MAX_TENSORS} are read"
        )
    metadata = _read_metadata(cursor, num_pairs)
    alignment = _alignment(metadata.get("general.alignment", DEFAULT_ALIGNMENT))
    tensors: dict[str, Tensor] = {}
    for index in range(num_tensors):
        tensor = _read_tensor(cursor, index)
        if tensor.name in tensors:
            raise InvalidGGUF(f"tensor {_shown(tensor.name)} is there twice")
        tensors[tensor.name] = tensor
    data_offset = -(-cursor.position // alignment) * alignment
    for tensor in tensors.values():
        _check_place(tensor, alignment, data_offset, cursor.size)
    return GGUF(version, metadata, tuple(tensors.values()), alignment, data_offset, cursor.size)


def _read_version(cursor: Cursor) -> int:
    start = cursor.take(min(len(MAGIC), cursor.size), "the magic number")
    if not MAGIC.startswith(start):
        raise InvalidGGUF(f"not a GGUF file: it starts with the bytes {start.hex(' ')} instead of {MAGIC.hex(' ')}")
    cursor.require(len(MAGIC) - len(start), "the magic number")
    version = cursor.u32("the version")
    if version in _VERSIONS:
        return version
    if version and version & 0xFFFF == 0:
        raise InvalidGGUF("the GGUF file is big-endian: only little-endian ones can be used, convert it again")
    raise InvalidGGUF(f"the GGUF file is of version {version}: only 2 and 3 can be used, convert it again")


def _read_metadata(cursor: Cursor, num_pairs: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for index in range(num_pairs):
        key = _decode_name(cursor.text(_MAX_KEY_BYTES, f"the key of metadata pair {index}"), f"metadata pair {index}")
        if key in metadata:
            raise InvalidGGUF(f"metadata key {_shown(key)} is there twice")
        what = f"metadata key {_shown(key)}"
        metadata[key] = _read_value(cursor, cursor.u32(what), what)
    return metadata


def _read_value(cursor: Cursor, kind: int, what: str) -> Any:
    if kind not in _MIN_BYTES:
        raise InvalidGGUF(f"{what} has a value of type {kind}, which GGUF does not have")
    if kind != _ARRAY:
        return _elements(cursor, kind, 1, 0, what)[0]
    inner, count = _array_head(cursor, what)
    if inner != _ARRAY and count <= (KEPT_TEXTS if inner == _STRING else KEPT_NUMBERS):
        cursor.keep(count)
        return _elements(cursor, inner, count, 1, what)
    ref = ArrayRef(inner, count, cursor.position)
    _skip_elements(cursor, inner, count, 1, what)
    return ref


def _array_head(cursor: Cursor, what: str) -> tuple[int, int]:
    """Type and number of an array's elements, which the file is long enough to hold."""
    kind, count = cursor.u32(what), cursor.u64(what)
    if kind not in _MIN_BYTES:
        raise InvalidGGUF(f"{what} has elements of type {kind}, which GGUF does not have")
    cursor.require(count * _MIN_BYTES[kind], what)
    return kind, count


def _skip_elements(cursor: Cursor, kind: int, count: int, depth: int, what: str) -> None:
    if kind in _NUMBERS:
        cursor.position += count * _MIN_BYTES[kind]
        return
    cursor.step(count)
    if kind == _STRING:
        cursor.skip_texts(count, what)
        return
    _check_depth(depth, what)
    for _ in range(count):
        inner, inner_count = _array_head(cursor, what)
        _skip_elements(cursor, inner, inner_count, depth + 1, what)


def _elements(cursor: Cursor, kind: int, count: int, depth: int, what: str = "a list in the metadata") -> list[Any]:
    """`count` values of one type. `depth` counts the arrays that they are in."""
    cursor.require(count * _MIN_BYTES[kind], what)
    cursor.step(count)
    if kind in _NUMBERS:
        return list(struct.unpack(f"<{count}{_NUMBERS[kind]}", cursor.take(count * _MIN_BYTES[kind], what)))
    if kind == _STRING:
        return [cursor.text(_MAX_TEXT_BYTES, what).decode("utf-8", "replace") for _ in range(count)]
    _check_depth(depth, what)
    return [_elements(cursor, *_array_head(cursor, what), depth + 1, what) for _ in range(count)]


def _check_depth(depth: int, what: str) -> None:
    if depth >= _MAX_DEPTH:
        raise InvalidGGUF(f"{what} has lists nested more than {_MAX_DEPTH} deep")


def _read_tensor(cursor: Cursor, index: int) -> Tensor:
    name = _decode_name(cursor.text(_MAX_NAME_BYTES, f"the name of tensor {index}"), f"tensor {index}")
    what = f"tensor {_shown(name)}"
    num_dimensions = cursor.u32(what)
    if not 1 <= num_dimensions <= 4:
        raise InvalidGGUF(f"{what} has {num_dimensions} dimensions: there must be 1 to 4")
    shape = struct.unpack(f"<{num_dimensions}Q", cursor.take(8 * num_dimensions, what))
    kind = cursor.u32(what)
    if kind not in TENSOR_TYPES:
        raise InvalidGGUF(f"{what} is of type {kind}, which this version does not know")
    row = TENSOR_TYPES[kind]
    if max(shape) >= _MAX_ELEMENTS or prod(shape) >= _MAX_ELEMENTS:
        raise InvalidGGUF(f"{what} has more elements than can be counted: {' x '.join(map(str, shape))}")
    if shape[0] % row.block_elements:
        raise InvalidGGUF(f"{what} has rows of {shape[0]} elements: {row.name} stores them in {row.block_elements}s")
    size_bytes = prod(shape) // row.block_elements * row.block_bytes
    return Tensor(name, row.name, shape, cursor.u64(what), size_bytes)


def _check_place(tensor: Tensor, alignment: int, data_offset: int, file_bytes: int) -> None:
    if tensor.offset % alignment:
        raise InvalidGGUF(f"tensor {_shown(tensor.name)} is at offset {tensor.offset}, no multiple of {alignment}")
    end = data_offset + tensor.offset + tensor.size_bytes
    if end > file_bytes:
        raise InvalidGGUF(f"tensor {_shown(tensor.name)} ends at byte {end}, but the file has {file_bytes} bytes")


def _alignment(value: Any) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not _MIN_ALIGNMENT <= value <= _MAX_ALIGNMENT or value & (value - 1):
        raise InvalidGGUF(
            f"general.alignment is {str(value)[:40]}: use a power of two from {_MIN_ALIGNMENT} to {_MAX_ALIGNMENT}"
        )
    return int(value)


def _decode_name(data: bytes, what: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidGGUF(f"the name of {what} is not UTF-8") from None
    if not text:
        raise InvalidGGUF(f"the name of {what} is empty")
    return text


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "...")


def _unreadable(error: OSError) -> StoreFailed:
    return StoreFailed(f"the GGUF file cannot be read: {error.strerror or 'input/output error'}")
