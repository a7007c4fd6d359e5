"""How much memory a load takes, and the window and number of sequences that fit when the user names none. Pure."""

from __future__ import annotations

import msgspec

from ...core.types import LoadOptions
from ...modelfile.gguf import GGUF

DEFAULT_WINDOW = 4096
DEFAULT_BATCH = 512
# Sequences that run at once: up to the first number whatever it takes, up to the second if they take no more than a
# quarter of what is free. llama.cpp writes all of the cache at load, so each also costs time.
MODEST_PARALLEL = 4
MAX_PARALLEL = 8
# A model that generates keeps a second cache for the text that it embeds. This bounds it for models with huge windows.
MAX_EMBED_WINDOW = 8192
# Rows of a batch whose logits may be wanted. Each takes room for the whole vocabulary.
MIN_OUTPUTS = 64
# Bytes for one element of the KV cache: q8_0 keeps 32 in 34 bytes, q4_0 in 18.
_KV_ELEMENT_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
# What is left to the rest of the machine.
_RESERVE_BYTES = 512 << 20
# Measured on SmolLM2 and Gemma 3: llama.cpp's tables for each token, and what it and the engine take besides.
_VOCAB_TOKEN_BYTES = 80
_ENGINE_BYTES = 16 << 20
_FLOAT_BYTES = 4
_MASK_BYTES = 2


class Plan(msgspec.Struct, frozen=True):
    """Window of one sequence in tokens, number of sequences, and what the load takes in bytes.

    `kv_bytes` is the cache for all sequences, `compute_bytes` what a batch is computed in and the engine takes.
    """

    num_ctx: int
    num_parallel: int
    weights_bytes: int
    kv_bytes: int
    compute_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.kv_bytes + self.compute_bytes


def kv_bytes_per_token(gguf: GGUF, cache_type: str) -> float:
    """Bytes of KV cache for one token over all layers."""
    heads = gguf.arch_value("attention.head_count_kv")
    # Where layers differ, each has its own number, and those without attention have 0.
    num_heads = sum(heads) if isinstance(heads, list) else gguf.block_count * gguf.head_count_kv
    return num_heads * (gguf.key_length + gguf.value_length) * _KV_ELEMENT_BYTES[cache_type]


def num_outputs(num_parallel: int) -> int:
    """Rows of one batch whose logits are kept."""
    return max(MIN_OUTPUTS, num_parallel)


def plan_load(gguf: GGUF, options: LoadOptions, available_bytes: int) -> Plan:
    """Choose what the options leave open: the window up to the default, and as many sequences as fit.

    A window is cut to what the model was trained for. Numbers that the user gave are kept even if they do not fit.
    """
    num_ctx = _window(gguf, options)
    window_bytes = num_ctx * kv_bytes_per_token(gguf, options.kv_cache_type or "f16")
    weights_bytes = _weights_bytes(gguf)
    compute_bytes = _compute_bytes(gguf, options, num_ctx)
    room = max(0, available_bytes - _RESERVE_BYTES - weights_bytes - compute_bytes)
    num_parallel = options.num_parallel or _fitting(room, window_bytes)
    return Plan(num_ctx, num_parallel, weights_bytes, int(num_parallel * window_bytes), compute_bytes)


def plan_embedding(gguf: GGUF, options: LoadOptions) -> Plan:
    """What a model takes that only embeds: the cache of one window, or none for encoders, which remember nothing."""
    num_ctx = _window(gguf, options)
    is_encoder = gguf.arch_value("attention.causal") is False
    kv_bytes = 0 if is_encoder else int(num_ctx * kv_bytes_per_token(gguf, "f16"))
    return Plan(num_ctx, 1, _weights_bytes(gguf), kv_bytes, _compute_bytes(gguf, options, num_ctx))


def _fitting(room: int, window_bytes: float) -> int:
    """How many sequences run at once."""
    if window_bytes <= 0:
        return MAX_PARALLEL
    modest = min(MODEST_PARALLEL, int(room / window_bytes))
    ample = min(MAX_PARALLEL, int(room / 4 / window_bytes))
    return max(1, modest, ample)


def _weights_bytes(gguf: GGUF) -> int:
    return sum(tensor.size_bytes for tensor in gguf.tensors)


def _compute_bytes(gguf: GGUF, options: LoadOptions, num_ctx: int) -> int:
    """The largest that is alive at once while a batch is computed: a layer's activations or the logits; the masks.

    Follows what llama.cpp reserves for models with gated feed-forward layers, of which all big ones are.
    """
    num_batch = options.num_batch or DEFAULT_BATCH
    num_vocab = max((tensor.shape[-1] for tensor in gguf.tensors if tensor.name == "token_embd.weight"), default=0)
    activations = num_batch * (2 * gguf.feed_forward_length + 4 * gguf.embedding_length) * _FLOAT_BYTES
    logits = num_outputs(options.num_parallel or 1) * num_vocab * _FLOAT_BYTES
    masks = num_batch * num_ctx * _MASK_BYTES
    if options.flash_attention is False:
        masks += num_batch * num_ctx * gguf.head_count * _FLOAT_BYTES
    return max(activations, logits) + masks + num_vocab * _VOCAB_TOKEN_BYTES + _ENGINE_BYTES


def _window(gguf: GGUF, options: LoadOptions) -> int:
    return max(1, min(options.num_ctx or DEFAULT_WINDOW, gguf.context_length or DEFAULT_WINDOW))
