"""What computes: batches of tokens, the context with its cache, and the one for embeddings."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from ....core.types import LoadOptions
from ..estimate import DEFAULT_BATCH, num_outputs
from .errors import last_errors, load_failed
from .model import Adapter, Model

KV_TYPES = {"f16": lib.GGML_TYPE_F16, "q8_0": lib.GGML_TYPE_Q8_0, "q4_0": lib.GGML_TYPE_Q4_0}
_NO_SLOT = 1
# Texts that are embedded at once.
_MAX_TEXTS = 64


class Batch:
    """Tokens for one decode, from any sequences, written as columns."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._tokens = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._counts = np.ones(capacity, np.int32)
        self._sequences = np.zeros(capacity, np.int32)
        self._wanted = np.zeros(capacity, np.int8)
        # llama.cpp takes a list of sequences for each token; ours are lists of one, laid out in one array.
        addresses = self._sequences.ctypes.data + np.arange(capacity, dtype=np.uintp) * self._sequences.itemsize
        self._lists = np.ascontiguousarray(addresses)
        self.struct = lib.llama_batch(
            n_tokens=0,
            token=_pointer(self._tokens, lib.llama_token),
            embd=None,
            pos=_pointer(self._positions, lib.llama_pos),
            n_seq_id=_pointer(self._counts, ctypes.c_int32),
            seq_id=_pointer(self._lists, ctypes.POINTER(lib.llama_seq_id)),
            logits=_pointer(self._wanted, ctypes.c_int8),
        )
        self.size = 0

    def clear(self) -> None:
        """Start the next batch."""
        self.size = 0

    def add(
        self, tokens: Sequence[int], position: int, sequence: int, wants_logits: bool, wants_all: bool = False
    ) -> int:
        """Append tokens of one sequence from `position` on; returns the row of the last, whose logits may be wanted.

        With `wants_all` the results of every one are kept.
        """
        start, end = self.size, self.size + len(tokens)
        self._tokens[start:end] = tokens
        self._positions[start:end] = np.arange(position, position + len(tokens))
        self._sequences[start:end] = sequence
        self._wanted[start:end] = wants_all
        self._wanted[end - 1] = wants_logits or wants_all
        self.size = end
        return end - 1


class Context:
    """The KV cache and the computation over it. Errors: LoadFailed when the memory cannot be had."""

    def __init__(self, model: Model, num_ctx: int, num_parallel: int, options: LoadOptions, num_threads: int) -> None:
        params = lib.llama_context_default_params()
        params.n_ctx = num_ctx * num_parallel
        params.n_batch = params.n_ubatch = options.num_batch or DEFAULT_BATCH
        params.n_seq_max = num_parallel
        # llama.cpp would make room for the logits of a whole batch: half a gigabyte for a big vocabulary.
        params.n_outputs_max = num_outputs(num_parallel)
        params.n_threads = params.n_threads_batch = num_threads
        params.kv_unified = False
        params.no_perf = True
        params.type_k = params.type_v = KV_TYPES[options.kv_cache_type or "f16"]
        if options.flash_attention is not None:
            params.flash_attn_type = (
                lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if options.flash_attention else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
            )
        last_errors.clear()
        self.pointer = lib.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise load_failed(f"llama.cpp cannot set up {num_parallel} windows of {num_ctx} tokens")
        self._memory = lib.llama_get_memory(self.pointer)
        self._num_vocab = model.num_vocab
        self.num_batch = int(lib.llama_n_batch(self.pointer))
        self.can_shift = bool(lib.llama_memory_can_shift(self._memory))

    def close(self) -> None:
        """Free the cache."""
        lib.llama_free(self.pointer)

    def decode(self, batch: Batch) -> bool:
        """Evaluate a batch. False when the cache has no room for it. Errors: RuntimeError when llama.cpp fails."""
        batch.struct.n_tokens = batch.size
        result = lib.llama_decode(self.pointer, batch.struct)
        if result not in (0, _NO_SLOT):
            raise RuntimeError(f"llama_decode returned {result}: {'; '.join(last_errors)}")
        return bool(result == 0)

    def set_adapters(self, adapters: Sequence[tuple[Adapter, float]]) -> None:
        """Compute with these adapters, each with its scale."""
        count = len(adapters)
        pointers = (lib.llama_adapter_lora_p_ctypes * count)(*(adapter.pointer for adapter, _ in adapters))
        scales = (ctypes.c_float * count)(*(scale for _, scale in adapters))
        lib.llama_set_adapters_lora(self.pointer, pointers, count, scales)

    def logits(self, row: int) -> npt.NDArray[np.float32]:
        """The logits of a row of the last batch, float32 of (vocabulary,), valid until the next decode."""
        pointer = lib.llama_get_logits_ith(self.pointer, row)
        return np.ctypeslib.as_array(pointer, (self._num_vocab,))

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Forget positions [start, end) of a sequence; end -1 means all. False where the memory cannot do it."""
        return bool(lib.llama_memory_seq_rm(self._memory, sequence, start, end))

    def copy(self, source: int, target: int) -> None:
        """Replace a sequence by a copy of another; the bytes are copied before the next batch is evaluated."""
        self.remove(target, 0)
        lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def move(self, sequence: int, start: int, end: int, delta: int) -> None:
        """Shift positions [start, end) of a sequence by `delta`."""
        lib.llama_memory_seq_add(self._memory, sequence, start, end, delta)


class EmbeddingContext:
    """A computation that gives each token's vector, or one score a sequence where the model has a rank head.

    `num_batch` tokens are computed at once; a causal model's texts may be longer, up to `num_ctx` in all.
    """

    def __init__(self, model: Model, num_ctx: int, num_batch: int, ranks: bool, num_threads: int) -> None:
        params = lib.llama_context_default_params()
        params.n_ctx = num_ctx
        params.n_batch = params.n_ubatch = num_batch
        params.n_seq_max = _MAX_TEXTS
        params.n_threads = params.n_threads_batch = num_threads
        params.kv_unified = True
        params.no_perf = True
        params.embeddings = True
        params.pooling_type = lib.LLAMA_POOLING_TYPE_RANK if ranks else lib.LLAMA_POOLING_TYPE_NONE
        last_errors.clear()
        self.pointer = lib.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise load_failed(f"llama.cpp cannot set up embeddings of {num_ctx} tokens")
        self._memory = lib.llama_get_memory(self.pointer)
        self._num_embed = model.num_embed
        self.num_batch = num_batch
        self.max_texts = _MAX_TEXTS

    @property
    def has_memory(self) -> bool:
        """False for encoders, which look at a whole text at once: such a context needs `num_batch` of its length."""
        return bool(self._memory)

    def close(self) -> None:
        """Free what it took."""
        lib.llama_free(self.pointer)

    def clear(self) -> None:
        """Forget all sequences. Encoders remember none."""
        if self._memory:
            lib.llama_memory_clear(self._memory, True)

    def compute(self, batch: Batch) -> None:
        """Evaluate a batch. Errors: RuntimeError when llama.cpp fails."""
        batch.struct.n_tokens = batch.size
        result = lib.llama_decode(self.pointer, batch.struct)
        if result:
            raise RuntimeError(f"llama_decode returned {result} for embeddings: {'; '.join(last_errors)}")

    def vectors(self, num_rows: int) -> npt.NDArray[np.float32]:
        """The vectors of the last batch, float32 of (num_rows, dimensions), valid until the next."""
        pointer = lib.llama_get_embeddings(self.pointer)
        return np.ctypeslib.as_array(pointer, (num_rows, self._num_embed))

    def score(self, sequence: int) -> npt.NDArray[np.float32]:
        """What the rank head says of a sequence of the last batch, float32 of (1,)."""
        pointer = lib.llama_get_embeddings_seq(self.pointer, sequence)
        return np.ctypeslib.as_array(pointer, (1,)).copy()


def _pointer(array: npt.NDArray[Any], kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
