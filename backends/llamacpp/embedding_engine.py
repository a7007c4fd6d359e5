"""The engine of embedding models, BERT and others: they make vectors or scores of texts, and generate nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import Unsupported
from ...core.types import LoadOptions
from ...modelfile.gguf import GGUF
from ..protocol import EmbedInput, EngineInfo, EngineRequest, StepOutput, Vision
from .binding.model import Model
from .embedder import Embedder
from .estimate import plan_embedding
from .tokenizer import LlamaTokenizer


class EmbeddingEngine:
    """An Engine that only embeds, so that no memory is kept for generation."""

    def __init__(self, model: Model, gguf: GGUF, options: LoadOptions, num_threads: int) -> None:
        plan = plan_embedding(gguf, options)
        self._model = model
        self._embedder = Embedder(model, gguf, plan.num_ctx, num_threads)
        self.tokenizer = LlamaTokenizer(model)
        self.info = EngineInfo(
            num_ctx=plan.num_ctx,
            num_parallel=plan.num_parallel,
            size_bytes=plan.total_bytes,
            size_vram_bytes=0,
            chat_template=model.chat_template,
            embed_window=plan.num_ctx,
        )

    @property
    def has_work(self) -> bool:
        """Never: texts are embedded as they come."""
        return False

    def open_projector(self, path: str) -> Vision:
        """Refused. Errors: Unsupported."""
        del path
        raise Unsupported("this model makes embeddings and takes no images")

    def add(self, request: EngineRequest) -> None:
        """Refused. Errors: Unsupported."""
        del request
        raise Unsupported("this model makes embeddings and generates no text")

    def embed(self, inputs: Sequence[EmbedInput]) -> Iterator[list[npt.NDArray[np.float32]]]:
        """Vectors of texts."""
        return self._embedder.embed(inputs)

    def abort(self, request_id: int) -> None:
        """Nothing runs."""

    def step(self) -> list[StepOutput]:
        """Nothing runs."""
        return []

    def close(self) -> None:
        """Free context and weights."""
        self._embedder.close()
        self._model.close()
