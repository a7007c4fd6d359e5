"""Windows and sequences chosen from memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
from corral.backends.llamacpp.estimate import DEFAULT_WINDOW, MAX_PARALLEL, kv_bytes_per_token, plan_load
from corral.core.types import LoadOptions
from corral.modelfile.gguf import GGUF
from models import smollm2_path

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
    assert (plan.num_ctx, plan.num_parallel) == (DEFAULT_WINDOW, MAX_PARALLEL)
    assert plan.kv_bytes == MAX_PARALLEL * 4096 * 128 * 1024


@pytest.mark.parametrize(
    ("available", "expected"), [(17 * GIB, 8), (12 * GIB, 5), (4 * GIB, 4), (2 * GIB, 2), (GIB, 1), (0, 1)]
)
def test_little_memory_gives_fewer_sequences(available: int, expected: int) -> None:
    assert plan_load(make_header(), LoadOptions(), available).num_parallel == expected


def test_numbers_of_the_user_are_kept() -> None:
    plan = plan_load(make_header(), LoadOptions(num_ctx=8192, num_parallel=6), GIB)
    assert (plan.num_ctx, plan.num_parallel) == (8192, 6)


def test_window_is_cut_to_what_the_model_was_trained_for() -> None:
    header = make_header(context_length=2048)
    assert plan_load(header, LoadOptions(num_ctx=100_000), 64 * GIB).num_ctx == 2048
    assert plan_load(header, LoadOptions(), 64 * GIB).num_ctx == 2048


def test_layers_without_attention_take_no_cache() -> None:
    header = make_header()
    header.metadata["llama.attention.head_count_kv"] = [8, 0, 8, 0]
    assert kv_bytes_per_token(header, "f16") == 16 * 256 * 2


_MEASURE = """
import sys, psutil
from pathlib import Path
from corral.backends.llamacpp import engine as engines
from corral.backends.llamacpp.estimate import plan_load
from corral.backends.protocol import EngineRequest
from corral.core.types import LoadOptions, LoadSpec, Sampling
from corral.modelfile.gguf import read_gguf

path, num_ctx, num_parallel, cache_type = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
options = LoadOptions(num_ctx=num_ctx, num_parallel=num_parallel, kv_cache_type=cache_type)
plan = plan_load(read_gguf(Path(path)), options, 0)
before = psutil.Process().memory_info().rss
engine = engines.load_engine(LoadSpec("llamacpp", path, options), lambda fraction: None)
tokens = [1000 + number for number in range(num_ctx - 2)]
engine.add(EngineRequest(1, tokens, Sampling(temperature=0), max_tokens=2, window=num_ctx))
while engine.has_work:
    engine.step()
print(plan.total_bytes, psutil.Process().memory_info().rss - before)
"""


@pytest.mark.parametrize(
    ("num_ctx", "num_parallel", "cache_type"), [(2048, 1, "f16"), (1024, 8, "f16"), (1024, 8, "q8_0"), (512, 4, "q4_0")]
)
def test_estimate_is_within_a_tenth_of_what_a_process_takes(num_ctx: int, num_parallel: int, cache_type: str) -> None:
    arguments = [str(smollm2_path()), str(num_ctx), str(num_parallel), cache_type]
    command = [sys.executable, "-c", _MEASURE, *arguments]
    estimate, measured = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
    assert estimate == pytest.approx(measured, rel=0.1)
