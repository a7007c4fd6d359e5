"""Answers of /v1/embeddings: vectors as numbers, or as base64 of little-endian float32."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from ...core.events import Embedded, Event
from .openai_encoder import find_done, print_warnings
from .vectors import read_vectors
from .whole_encoder import WholeEncoder


class EmbeddingEncoder(WholeEncoder):
    """A list of vectors in the order of the inputs."""

    def _answer(self, events: Sequence[Event]) -> dict[str, Any]:
        done = find_done(events)
        printed = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(self._vectors(events))
        ]
        usage = {"prompt_tokens": done.usage.prompt_tokens, "total_tokens": done.usage.prompt_tokens}
        answer = {"object": "list", "data": printed, "model": self._call.model, "usage": usage}
        return answer | print_warnings([done])

    def _vectors(self, events: Sequence[Event]) -> list[Any]:
        if self._call.details != "base64":
            return [list(vector) for vector in read_vectors(events)]
        found = [data for event in events if isinstance(event, Embedded) for data in event.vectors]
        return [base64.b64encode(data).decode() for data in found]
