"""The tables of ggml, against those of the `gguf` package."""

from __future__ import annotations

import pytest
from corral.modelfile.ggml import FILE_TYPES, TENSOR_TYPES, format_parameter_count
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType


def test_tensor_types_when_compared_with_the_gguf_package() -> None:
    theirs = {int(kind): (kind.name, *GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}
    assert {kind: tuple(row) for kind, row in TENSOR_TYPES.items() if kind in theirs} == theirs


def test_file_types_when_compared_with_the_gguf_package() -> None:
    named = {int(kind): kind.name.split("_", 1)[1].removesuffix("_MOE") for kind in LlamaFileType if kind < 1024}
    assert {kind: name for kind, name in FILE_TYPES.items() if kind in named} == named


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (12_345, "12K"),
        (134_515_008, "134.52M"),
        (22_000_000, "22M"),
        (999_999_999, "1000.00M"),
        (7_241_732_096, "7.2B"),
        (8_030_261_248, "8.0B"),
        (7_000_000_000, "7B"),
    ],
)
def test_parameter_count_when_formatted(count: int, shown: str) -> None:
    assert format_parameter_count(count) == shown
