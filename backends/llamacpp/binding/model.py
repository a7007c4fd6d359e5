"""Weights, vocabulary and adapters."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llama_cpp import llama_cpp as lib

from ....core.types import LoadOptions
from .errors import last_errors, load_failed

_TOKEN_ATTR_CONTROL = 1 << 3
_TOKEN_ATTR_USER_DEFINED = 1 << 4


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
        last_errors.clear()
        self.pointer = lib.llama_model_load_from_file(path.encode(), params)
        if not self.pointer:
            raise load_failed("llama.cpp cannot load the model")
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


class Adapter:
    """A LoRA adapter for a model, from a GGUF file; freed with the model. Errors: LoadFailed."""

    def __init__(self, model: Model, path: str) -> None:
        last_errors.clear()
        self.pointer = lib.llama_adapter_lora_init(model.pointer, path.encode())
        if not self.pointer:
            raise load_failed("llama.cpp cannot load an adapter of the model")

    @property
    def num_invocation_tokens(self) -> int:
        """More than 0 for adapters that only count from certain tokens on."""
        return int(lib.llama_adapter_get_alora_n_invocation_tokens(self.pointer))


def _load_mode(default: int, options: LoadOptions) -> int:
    """Whether the weights are mapped or read, and kept from being swapped out."""
    maps = options.use_mmap is not False
    if options.use_mlock:
        return int(lib.LLAMA_LOAD_MODE_MMAP_MLOCK if maps else lib.LLAMA_LOAD_MODE_MLOCK)
    if options.use_mmap is None:
        return default
    return int(lib.LLAMA_LOAD_MODE_MMAP if maps else lib.LLAMA_LOAD_MODE_NONE)
