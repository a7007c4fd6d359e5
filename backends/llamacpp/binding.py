"""The only file that touches llama_cpp pointers: model, context, batch and sampler chain as Python objects."""

from __future__ import annotations

import ctypes
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from ...core.errors import LoadFailed
from ...core.types import LoadOptions
from .estimate import DEFAULT_BATCH, num_outputs

KV_TYPES = {"f16": lib.GGML_TYPE_F16, "q8_0": lib.GGML_TYPE_Q8_0, "q4_0": lib.GGML_TYPE_Q4_0}
_TOKEN_ATTR_CONTROL = 1 << 3
_TOKEN_ATTR_USER_DEFINED = 1 << 4
_ERROR_LEVEL = 4
_NO_SLOT = 1
# Texts that are embedded at once.
_MAX_TEXTS = 64

_last_errors: deque[str] = deque(maxlen=8)


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _keep_errors(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    del user_data
    if level >= _ERROR_LEVEL and (line := text.decode("utf-8", "replace").strip()):
        _last_errors.append(line)


def start_backend() -> None:
    """Prepare llama.cpp once for this process and keep its errors for messages."""
    lib.llama_log_set(_keep_errors, ctypes.c_void_p(0))
    lib.llama_backend_init()


def _load_mode(default: int, options: LoadOptions) -> int:
    """Whether the weights are mapped or read, and kept from being swapped out."""
    maps = options.use_mmap is not False
    if options.use_mlock:
        return int(lib.LLAMA_LOAD_MODE_MMAP_MLOCK if maps else lib.LLAMA_LOAD_MODE_MLOCK)
    if options.use_mmap is None:
        return default
    return int(lib.LLAMA_LOAD_MODE_MMAP if maps else lib.LLAMA_LOAD_MODE_NONE)


def _load_failed(what: str) -> LoadFailed:
    # llama.cpp's first error names the cause; quoted names of files are paths of this machine.
    reasons = [re.sub(r"'[^']*/[^']*'", "the file", line) for line in _last_errors]
    reason = reasons[0].split(": ", 1)[-1] if reasons else "llama.cpp gave no reason"
    return LoadFailed(f"{what}: {reason}")


class Model:
    """Weights and vocabulary of one GGUF file. Errors: LoadFailed."""

    def __init__(self, path: str, options: LoadOptions, on_progress: Callable[[float], None]) -> None:
        params = lib.llama_model_default_params()
        params.n_gpu_layers = -1 if options.num_gpu is None else options.num_gpu
        params.main_gpu = options.main_gpu or 0
        params.load_mode = _load_mode(params.load_mode, options)
        if options.tensor_split:
            shares = (ctypes.c_float * max(len(options.tensor_split), lib.llama_max_devices()))(*options.tensor_split)
            params.tensor_split = ctypes.cast(shares, ctypes.POINTER(ctypes.c_float))
        last = -1.0

        @lib.llama_progress_callback  # type: ignore[untyped-decorator]
        def progress(fraction: float, user_data: ctypes.c_void_p) -> bool:
            nonlocal last
            if fraction - last >= 0.01:
                last = fraction
                on_progress(fraction)
            return True

        params.progress_callback = progress
        _last_errors.clear()
        self.pointer = lib.llama_model_load_from_file(path.encode(), params)
        if not self.pointer:
            raise _load_failed("llama.cpp cannot load the model")
        self.vocab = lib.llama_model_get_vocab(self.pointer)
        self.num_vocab = int(lib.llama_vocab_n_tokens(self.vocab))

    def close(self) -> None:
        """Free the weights."""
        lib.llama_model_free(self.pointer)

    @property
    def can_decode(self) -> bool:
        """False for encoders, which generate nothing."""
        return bool(lib.llama_model_has_decoder(self.pointer))

    @property
    def is_recurrent(self) -> bool:
        """Whether what it remembers of a sequence is a state, in all layers or some, that cannot forget its end."""
        return bool(lib.llama_model_is_recurrent(self.pointer) or lib.llama_model_is_hybrid(self.pointer))

    @property
    def num_embed(self) -> int:
        """Numbers in the vector of a token."""
        return int(lib.llama_model_n_embd_out(self.pointer))

    @property
    def chat_template(self) -> str | None:
        """The Jinja template from the metadata."""
        text = lib.llama_model_chat_template(self.pointer, None)
        return text.decode("utf-8", "replace") if text else None

    def is_end(self, token: int) -> bool:
        """Whether a token ends a generation."""
        return bool(lib.llama_vocab_is_eog(self.vocab, token))

    def tokenize(self, text: str, parse_special: bool, add_special: bool = False) -> list[int]:
        """Tokens of a text; with `add_special` those that the model wants before and after it as well."""
        data = text.encode("utf-8", "surrogatepass")
        capacity = len(data) + 8
        buffer = (lib.llama_token * capacity)()
        count = lib.llama_tokenize(self.vocab, data, len(data), buffer, capacity, add_special, parse_special)
        if count < 0:
            buffer = (lib.llama_token * -count)()
            count = lib.llama_tokenize(self.vocab, data, len(data), buffer, -count, add_special, parse_special)
        return list(buffer[:count])

    def piece(self, token: int, special: bool = False) -> bytes:
        """The bytes of a token; control tokens have some only with `special`."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = lib.llama_token_to_piece(self.vocab, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def special_texts(self) -> dict[int, str]:
        """Texts that `parse_special` turns into control or user-defined tokens, by those tokens."""
        wanted = _TOKEN_ATTR_CONTROL | _TOKEN_ATTR_USER_DEFINED
        return {
            token: text
            for token in range(self.num_vocab)
            if lib.llama_vocab_get_attr(self.vocab, token) & wanted
            and (text := self.piece(token, special=True).decode("utf-8", "replace"))
        }

    def is_control(self, token: int) -> bool:
        """Whether a token is no text by itself."""
        return bool(lib.llama_vocab_is_control(self.vocab, token))

    def separators(self) -> list[int]:
        """What stands between two texts: the end token and the separator, as far as the vocabulary asks for them."""
        wanted = (
            (lib.llama_vocab_get_add_eos, lib.llama_vocab_eos),
            (lib.llama_vocab_get_add_sep, lib.llama_vocab_sep),
        )
        found = [self._token(getter) for asks, getter in wanted if asks(self.vocab)]
        return [token for token in found if token is not None]

    def filler_token(self) -> int:
        """A token that stands for an empty text."""
        found = (self._token(getter) for getter in (lib.llama_vocab_eos, lib.llama_vocab_bos))
        return next((token for token in found if token is not None), 0)

    def begin_token(self) -> int | None:
        """The token that starts every prompt, where the model wants one."""
        return self._token(lib.llama_vocab_bos) if lib.llama_vocab_get_add_bos(self.vocab) else None

    def begin_text(self) -> str:
        """The text of the beginning-of-sequence token, for templates."""
        return self._text(lib.llama_vocab_bos)

    def end_text(self) -> str:
        """The text of the end-of-sequence token, for templates."""
        return self._text(lib.llama_vocab_eos)

    def _token(self, getter: Callable[[Any], int]) -> int | None:
        token = int(getter(self.vocab))
        return token if token >= 0 else None

    def _text(self, getter: Callable[[Any], int]) -> str:
        token = self._token(getter)
        return "" if token is None else self.piece(token, special=True).decode("utf-8", "replace")


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
        _last_errors.clear()
        self.pointer = lib.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise _load_failed(f"llama.cpp cannot set up {num_parallel} windows of {num_ctx} tokens")
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
            raise RuntimeError(f"llama_decode returned {result}: {'; '.join(_last_errors)}")
        return bool(result == 0)

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
        _last_errors.clear()
        self.pointer = lib.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise _load_failed(f"llama.cpp cannot set up embeddings of {num_ctx} tokens")
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
            raise RuntimeError(f"llama_decode returned {result} for embeddings: {'; '.join(_last_errors)}")

    def vectors(self, num_rows: int) -> npt.NDArray[np.float32]:
        """The vectors of the last batch, float32 of (num_rows, dimensions), valid until the next."""
        pointer = lib.llama_get_embeddings(self.pointer)
        return np.ctypeslib.as_array(pointer, (num_rows, self._num_embed))

    def score(self, sequence: int) -> npt.NDArray[np.float32]:
        """What the rank head says of a sequence of the last batch, float32 of (1,)."""
        pointer = lib.llama_get_embeddings_seq(self.pointer, sequence)
        return np.ctypeslib.as_array(pointer, (1,)).copy()


class Chain:
    """A sampler chain of one sequence. `add` takes a llama_sampler_init_… result and owns it."""

    def __init__(self) -> None:
        params = lib.llama_sampler_chain_default_params()
        params.no_perf = True
        self._pointer = lib.llama_sampler_chain_init(params)

    def add(self, sampler: Any) -> None:
        """Append a sampler."""
        lib.llama_sampler_chain_add(self._pointer, sampler)

    def accept(self, token: int) -> None:
        """Let the samplers know of a token that was not sampled here, as of a prompt."""
        lib.llama_sampler_accept(self._pointer, token)

    def sample(self, context: Context, row: int) -> int:
        """Choose a token for a row of the last batch."""
        return int(lib.llama_sampler_sample(self._pointer, context.pointer, row))

    def close(self) -> None:
        """Free the chain and its samplers."""
        lib.llama_sampler_free(self._pointer)


def _pointer(array: npt.NDArray[Any], kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
