"""Texts to vectors, in a context beside the one that generates, so that neither changes what the other gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import Unsupported
from ...modelfile.gguf import GGUF
from ..protocol import EmbedInput
from .binding.context import Batch, EmbeddingContext
from .binding.model import Model

# llama.cpp's ids of poolings, by our names.
_POOLINGS = {1: "mean", 2: "cls", 3: "last"}
_RANK = 4
# llama.cpp works out the logits of every token that it embeds: measured on SmolLM2, 512 tokens at once take 190 MiB for
# that, 128 take 50, and larger vocabularies take more in proportion.
_CHUNK = 128
Vector = npt.NDArray[np.float32]


class Embedder:
    """Texts to vectors, or pairs to scores; at most `window` tokens each.

    Where the file names no pooling, encoders take the mean of a text's tokens, others its last, which has seen all.
    """

    def __init__(self, model: Model, gguf: GGUF, window: int, num_threads: int) -> None:
        self._ranks = gguf.pooling_type == _RANK
        is_causal = gguf.arch_value("attention.causal") is not False
        context = None
        if is_causal and not self._ranks:
            context = EmbeddingContext(model, window, min(_CHUNK, window), False, num_threads)
            is_causal = context.has_memory
            if not is_causal:
                context.close()
        # Only what a causal model has seen stays in its memory. Others look at all of a text at once.
        self._context = context if context and is_causal else _whole_context(model, window, self._ranks, num_threads)
        self._pooling = _POOLINGS.get(gguf.pooling_type or 0, "last" if is_causal else "mean")
        self._batch = Batch(self._context.num_batch)

    def embed(self, inputs: Sequence[EmbedInput]) -> Iterator[list[Vector]]:
        """After each computation the vectors that it finished, float32 of (dimensions,). Errors: Unsupported."""
        for lot in _share_out(inputs, self._context.num_batch, self._context.max_texts):
            self._context.clear()
            pools = [self._pool(item.pooling) for item in lot]
            longest = max(len(item.tokens) for item in lot)
            for start in range(0, longest, self._context.num_batch):
                parts = [item.tokens[start : start + self._context.num_batch] for item in lot]
                for pool, rows in zip(pools, self._compute(parts, start), strict=True):
                    pool.take(rows)
                is_last = start + self._context.num_batch >= longest
                yield [pool.vector() for pool in pools] if is_last else []

    def close(self) -> None:
        """Free the context."""
        self._context.close()

    def _compute(self, parts: Sequence[list[int]], position: int) -> list[Vector]:
        """Rows of (tokens, dimensions) for each part; of (1, 1) from a rank head."""
        self._batch.clear()
        for index, tokens in enumerate(parts):
            self._batch.add(tokens, position, index, True, wants_all=True)
        self._context.compute(self._batch)
        if self._ranks:
            return [self._context.score(index)[np.newaxis] for index in range(len(parts))]
        ends = np.cumsum([len(tokens) for tokens in parts])
        return list(np.split(self._context.vectors(self._batch.size), ends[:-1]))

    def _pool(self, asked: str | None) -> _Pool:
        if self._ranks and asked:
            raise Unsupported("pooling: a model with a rank head gives scores and has none")
        name = asked or self._pooling
        if name not in _POOLINGS.values():
            raise Unsupported(f"pooling: {name!r} is none of {', '.join(_POOLINGS.values())}")
        return _Pool(name)


class _Pool:
    """The vector of one text, from those of its tokens as they come."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sum: npt.NDArray[np.float64] | None = None
        self._num_rows = 0

    def take(self, rows: Vector) -> None:
        """Take in the next rows, (tokens, dimensions). They are read now, and may change afterwards."""
        if self._name == "cls" and self._num_rows:
            return
        chosen = {"last": rows[-1:], "cls": rows[:1], "mean": rows}[self._name].sum(axis=0, dtype=np.float64)
        if self._sum is None or self._name == "last":
            self._sum, self._num_rows = chosen, 0
        else:
            self._sum = self._sum + chosen
        self._num_rows += len(rows) if self._name == "mean" else 1

    def vector(self) -> Vector:
        """What came of them, float32 of (dimensions,)."""
        assert self._sum is not None, "no text is empty"
        vector: Vector = (self._sum / self._num_rows).astype(np.float32)
        return vector


def _whole_context(model: Model, window: int, ranks: bool, num_threads: int) -> EmbeddingContext:
    return EmbeddingContext(model, window, window, ranks, num_threads)


def _share_out(inputs: Sequence[EmbedInput], num_batch: int, max_texts: int) -> Iterator[list[EmbedInput]]:
    """Texts in lots that are computed together: as many as fit one batch, or a single one that is longer."""
    lot: list[EmbedInput] = []
    room = num_batch
    for item in inputs:
        if lot and (len(item.tokens) > room or len(lot) == max_texts):
            yield lot
            lot, room = [], num_batch
        lot.append(item)
        room -= len(item.tokens)
    if lot:
        yield lot
