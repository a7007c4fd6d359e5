"""Pictures for one loaded model: read beside the engine's thread, encoded on it, the encodings kept for a while."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from ..protocol import Picture, PicturePart, PlacedPicture
from .binding.context import Context
from .binding.model import Model
from .binding.projector import Chunk, Projector

# Encodings of pictures that the next turn of a chat asks for again. One of 576 cells for a model of 4096 takes 9 MiB.
_CACHED_BYTES = 128 << 20
_KEY_BITS = 40
_MAX_POSITIONS = 1 << 20


class PictureReader:
    """One projector, behind the Vision protocol."""

    def __init__(self, model: Model, path: str, num_threads: int) -> None:
        self._projector = Projector(model, path, num_threads)
        self._encoded: OrderedDict[int, npt.NDArray[np.float32]] = OrderedDict()
        self._num_bytes = 0

    def close(self) -> None:
        """Free the projector."""
        self._projector.close()

    def read(self, data: bytes) -> Picture:
        """A picture file in parts. Errors: InvalidRequest for files that cannot be read."""
        key = int.from_bytes(hashlib.sha256(data).digest()[: _KEY_BITS // 8])
        parts: list[list[int] | PicturePart] = []
        for index, part in enumerate(self._projector.chunks(data)):
            if isinstance(part, Chunk):
                # No token is negative. Other pictures, and other parts of one, have other numbers at every position.
                first = -1 - (key * 64 + index) * _MAX_POSITIONS
                stand_ins = [first - offset for offset in range(part.num_positions)]
                parts.append(PicturePart(stand_ins, part.num_cells, part))
            else:
                parts.append(part)
        return Picture(parts)

    def evaluate(self, context: Context, placed: PlacedPicture, position: int, sequence: int) -> None:
        """Put a part of a picture into the cache of a sequence. Errors: RuntimeError."""
        self._projector.evaluate(context, placed.part.handle, self._encode(placed.part), position, sequence)

    def _encode(self, part: PicturePart) -> npt.NDArray[np.float32]:
        key = part.stand_ins[0]
        if key in self._encoded:
            self._encoded.move_to_end(key)
            return self._encoded[key]
        encoded = self._encoded[key] = self._projector.encode(part.handle)
        self._num_bytes += encoded.nbytes
        while self._num_bytes > _CACHED_BYTES and len(self._encoded) > 1:
            self._num_bytes -= self._encoded.popitem(last=False)[1].nbytes
        return encoded
