"""Answers of the rerank endpoints: documents with their scores, best first.

A rank head's score is a logit; the logistic function brings it to 0..1, as Jina, Cohere and TEI have it;
`raw_scores` leaves it. The score of other models is the cosine of the vectors of query and document, from -1 to 1.
"""

from __future__ import annotations

import array
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.events import Event
from .endpoint import EmbedCall
from .openai_encoder import find_done, print_warnings
from .vectors import read_vectors
from .whole_encoder import WholeEncoder


class RankDetails(msgspec.Struct, frozen=True):
    """What is wanted: TEI's list rather than an object, the texts too, a rank head's scores as they are, the best."""

    is_list: bool = False
    has_text: bool = False
    is_raw: bool = False
    top_n: int | None = None


class RankEncoder(WholeEncoder):
    """Prints documents in order; of equal ones, the first goes first."""

    def _answer(self, events: Sequence[Event]) -> Any:
        call, details = self._call, self._call.details
        assert isinstance(call, EmbedCall), "made by parse_rank"
        assert isinstance(details, RankDetails), "made by parse_rank"
        scores = _score(read_vectors(events), len(call.inputs), details.is_raw)
        order = sorted(range(len(scores)), key=lambda index: -scores[index])[: details.top_n]
        if details.is_list:
            texts = [{"text": call.inputs[index]} if details.has_text else {} for index in order]
            return [{"index": index, "score": scores[index], **text} for index, text in zip(order, texts, strict=True)]
        results = [
            {"index": index, "relevance_score": scores[index]}
            | ({"document": {"text": call.inputs[index]}} if details.has_text else {})
            for index in order
        ]
        done = find_done(events)
        num_tokens = done.usage.prompt_tokens
        return {
            "id": f"rerank-{self._stamp.id}",
            "object": "list",
            "model": call.model,
            "results": results,
            "usage": {"prompt_tokens": num_tokens, "total_tokens": num_tokens},
        } | print_warnings([done])


def _score(vectors: list[array.array[float]], num_documents: int, is_raw: bool) -> list[float]:
    """A score for each document: as many vectors as documents are scores, one more begins with the query's."""
    if len(vectors) == num_documents:
        return [vector[0] if is_raw else _logistic(vector[0]) for vector in vectors]
    query, *documents = vectors
    return [sum(map(float.__mul__, query, document)) for document in documents]


def _logistic(logit: float) -> float:
    # The two forms keep exp from overflowing.
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))
