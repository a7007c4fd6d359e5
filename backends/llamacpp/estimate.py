"""How much memory a load takes, and the window and number of sequences that fit when the user names none. Pure."""

from __future__ import annotations

import msgspec

from ...core.types import LoadOptions
from ...modelfile.gguf import GGUF

DEFAULT_WINDOW = 4096
DEFAULT_PARALLEL = 4
# A model that generates keeps a second cache for the text that it embeds. This bounds it for models with huge windows.
MAX_EMBED_WINDOW = 8192
# Bytes for one element of the KV cache: q8_0 keeps 32 in 34 bytes, q4_0 in 18.
_KV_ELEMENT_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
# What is left to the rest of the machine, and to llama.cpp's own buffers.
_RESERVE_BYTES = 512 << 20


class Plan(msgspec.Struct, frozen=True):
    """Window of one sequence in tokens, number of sequences, and bytes of KV cache for all of them."""

    num_ctx: int
    num_parallel: int
    kv_bytes: int


def kv_bytes_per_token(gguf: GGUF, cache_type: str) -> float:
    """Bytes of KV cache for one token over all layers."""
    elements = gguf.block_count * gguf.head_count_kv * (gguf.key_length + gguf.value_length)
    return elements * _KV_ELEMENT_BYTES[cache_type]


def plan_load(gguf: GGUF, options: LoadOptions, available_bytes: int) -> Plan:
    """Choose what the options leave open: as many sequences as fit, then the largest window up to the default.

    A window is cut to what the model was trained for. Numbers that the user gave are kept even if they do not fit.
    """
    num_ctx = _window(gguf, options)
    per_token = kv_bytes_per_token(gguf, options.kv_cache_type or "f16")
    room = max(0, available_bytes - _RESERVE_BYTES)
    num_parallel = options.num_parallel or DEFAULT_PARALLEL
    if not options.num_parallel:
        while num_parallel > 1 and num_parallel * num_ctx * per_token > room:
            num_parallel -= 1
    return Plan(num_ctx, num_parallel, int(num_parallel * num_ctx * per_token))


def plan_embedding(gguf: GGUF, options: LoadOptions) -> Plan:
    """What a model takes that only embeds: the cache of one window, or none for encoders, which remember nothing."""
    num_ctx = _window(gguf, options)
    is_encoder = gguf.arch_value("attention.causal") is False
    kv_bytes = 0 if is_encoder else int(num_ctx * kv_bytes_per_token(gguf, "f16"))
    return Plan(num_ctx, 1, kv_bytes)


def _window(gguf: GGUF, options: LoadOptions) -> int:
    return max(1, min(options.num_ctx or DEFAULT_WINDOW, gguf.context_length or DEFAULT_WINDOW))
