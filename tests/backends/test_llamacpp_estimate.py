"""Windows and sequences chosen from memory."""

from __future__ import annotations

import pytest
from corral.backends.llamacpp.estimate import DEFAULT_PARALLEL, DEFAULT_WINDOW, kv_bytes_per_token, plan_load
from corral.core.types import LoadOptions
from corral.modelfile.gguf import GGUF

GIB = 1 << 30


def make_header(**values: int) -> GGUF:
    defaults = {"block_count": 32, "embedding_length": 4096, "attention.head_count": 32, "attention.head_count_kv": 8}
    metadata = {"general.architecture": "llama", "llama.context_length": 131072}
    metadata |= {f"llama.{name}": value for name, value in (defaults | values).items()}
    return GGUF(3, metadata, (), 32, 0, 0)


def test_llama_3_8b_takes_128_kib_for_a_token() -> None:
    assert kv_bytes_per_token(make_header(), "f16") == 128 * 1024


def test_quantized_cache_is_smaller_by_its_block_format() -> None:
    assert kv_bytes_per_token(make_header(), "q8_0") == 128 * 1024 * 34 / 64


def test_plenty_of_memory_gives_the_defaults() -> None:
    plan = plan_load(make_header(), LoadOptions(), 64 * GIB)
    assert (plan.num_ctx, plan.num_parallel) == (DEFAULT_WINDOW, DEFAULT_PARALLEL)
    assert plan.kv_bytes == 4 * 4096 * 128 * 1024


@pytest.mark.parametrize(("available", "expected"), [(3 * GIB, 4), (2 * GIB, 3), (GIB, 1), (0, 1)])
def test_little_memory_gives_fewer_sequences(available: int, expected: int) -> None:
    assert plan_load(make_header(), LoadOptions(), available).num_parallel == expected


def test_numbers_of_the_user_are_kept() -> None:
    plan = plan_load(make_header(), LoadOptions(num_ctx=8192, num_parallel=6), GIB)
    assert (plan.num_ctx, plan.num_parallel) == (8192, 6)


def test_window_is_cut_to_what_the_model_was_trained_for() -> None:
    header = make_header(context_length=2048)
    assert plan_load(header, LoadOptions(num_ctx=100_000), 64 * GIB).num_ctx == 2048
    assert plan_load(header, LoadOptions(), 64 * GIB).num_ctx == 2048
