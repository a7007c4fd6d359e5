"""libmtmd: a projector that turns pictures into what a model reads in place of tokens."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_cpp import llama_cpp as lib

from ....core.errors import InvalidRequest, Unsupported
from .context import Context
from .errors import keep_errors, last_errors, load_failed
from .model import Model

_MARKER = b"<__media__>"
_TEXT_CHUNK = 0


def load_library() -> Any:
    """The module of libmtmd. Errors: Unsupported where llama-cpp-python was built without it."""
    try:
        from llama_cpp import mtmd_cpp
    except (OSError, RuntimeError, FileNotFoundError):
        raise Unsupported(
            "images need llama.cpp's libmtmd, which this installation lacks: install llama-cpp-python anew, "
            "without -DLLAVA_BUILD=OFF"
        ) from None
    return mtmd_cpp


class Chunk:
    """One part of a picture, as the encoder takes it. `num_cells` tokens of cache, over `num_positions` positions."""

    def __init__(self, library: Any, pointer: Any) -> None:
        self._library = library
        self.pointer = library.mtmd_input_chunk_copy(pointer)
        self.num_cells = int(library.mtmd_input_chunk_get_n_tokens(pointer))
        self.num_positions = int(library.mtmd_input_chunk_get_n_pos(pointer))

    def __del__(self) -> None:
        self._library.mtmd_input_chunk_free(self.pointer)


class Projector:
    """A projector for a model, from a GGUF file. `chunks` may be called from other threads. Errors: LoadFailed."""

    def __init__(self, model: Model, path: str, num_threads: int) -> None:
        self._library = library = load_library()
        library.mtmd_helper_log_set(keep_errors, ctypes.c_void_p(0))
        params = library.mtmd_context_params_default()
        params.print_timings = params.warmup = False
        params.n_threads = num_threads
        params.media_marker = _MARKER
        last_errors.clear()
        self._pointer = library.mtmd_init_from_file(path.encode(), model.pointer, params)
        if not self._pointer:
            raise load_failed("llama.cpp cannot load the model's projector")
        if not library.mtmd_support_vision(self._pointer):
            raise Unsupported("the model's projector takes no images")
        self._num_embed = int(lib.llama_model_n_embd_inp(model.pointer))

    def close(self) -> None:
        """Free the projector."""
        self._library.mtmd_free(self._pointer)

    def chunks(self, data: bytes) -> list[list[int] | Chunk]:
        """A picture file as parts: tokens that the model wants around pictures, and chunks of it.

        Errors: InvalidRequest for files that cannot be read.
        """
        library = self._library
        buffer = (ctypes.c_uint8 * len(data)).from_buffer_copy(data)
        bitmap = library.mtmd_helper_bitmap_init_from_buf(self._pointer, buffer, len(data), False)
        if not bitmap:
            raise InvalidRequest("an image cannot be read: it is damaged, or of another kind than JPEG, PNG and GIF")
        found = library.mtmd_input_chunks_init()
        try:
            text = library.mtmd_input_text(_MARKER, len(_MARKER), False, True)
            bitmaps = (ctypes.c_void_p * 1)(bitmap)
            if library.mtmd_tokenize(self._pointer, found, ctypes.byref(text), bitmaps, 1):
                raise InvalidRequest("an image cannot be used: the model's projector refuses it")
            count = library.mtmd_input_chunks_size(found)
            return [self._part(library.mtmd_input_chunks_get(found, index)) for index in range(count)]
        finally:
            library.mtmd_input_chunks_free(found)
            library.mtmd_bitmap_free(bitmap)

    def encode(self, chunk: Chunk) -> npt.NDArray[np.float32]:
        """What the model reads of a chunk, float32 of (cells, embedding). Errors: RuntimeError."""
        if self._library.mtmd_encode_chunk(self._pointer, chunk.pointer):
            raise RuntimeError(f"the projector failed on an image: {'; '.join(last_errors)}")
        pointer = self._library.mtmd_get_output_embd(self._pointer)
        return np.ctypeslib.as_array(pointer, (chunk.num_cells, self._num_embed)).copy()

    def evaluate(
        self, context: Context, chunk: Chunk, encoded: npt.NDArray[np.float32], position: int, sequence: int
    ) -> None:
        """Put a chunk into the cache of a sequence from `position` on. Errors: RuntimeError."""
        after = lib.llama_pos(0)
        floats = encoded.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        no_callback = self._library.mtmd_helper_post_decode_callback(0)
        result = self._library.mtmd_helper_decode_image_chunk(
            self._pointer,
            context.pointer,
            chunk.pointer,
            floats,
            position,
            sequence,
            context.num_batch,
            ctypes.byref(after),
            no_callback,
            None,
        )
        if result:
            raise RuntimeError(f"llama.cpp cannot evaluate an image: {'; '.join(last_errors)}")

    def _part(self, pointer: Any) -> list[int] | Chunk:
        library = self._library
        if library.mtmd_input_chunk_get_type(pointer) != _TEXT_CHUNK:
            return Chunk(library, pointer)
        count = ctypes.c_size_t(0)
        tokens = library.mtmd_input_chunk_get_tokens_text(pointer, ctypes.byref(count))
        return [int(tokens[index]) for index in range(count.value)]
