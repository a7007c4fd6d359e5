"""Texts on their way to an engine that makes vectors of them, one computation between any two steps of generation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import ContextExceeded, CorralError, InvalidRequest
from ..core.events import Done, Embedded, Event, Failed, FinishReason, Timings, Usage
from ..core.types import EmbedPair, EmbedRequest
from .protocol import EmbedInput, Engine

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Tokens of one request's turn, unless a single text has more: some computations, so that short requests wait little.
_TURN_TOKENS = 512


class PreparedEmbedding(NamedTuple):
    """A request with its texts as tokens, and how many of them were cut."""

    request: EmbedRequest
    inputs: list[EmbedInput]
    num_cut: int


class _Job:
    """One request: what is left of it to do, its turn where it has one, and the vectors so far."""

    def __init__(self, prepared: PreparedEmbedding) -> None:
        self.prepared = prepared
        self.vectors: list[bytes] = []
        self._waiting = deque(prepared.inputs)
        self._turn: Iterator[list[npt.NDArray[np.float32]]] | None = None
        self._num_begun = 0
        self.started_ns = time.monotonic_ns()

    @property
    def is_done(self) -> bool:
        """Whether every text has its vector."""
        return not self._waiting and self._turn is None

    @property
    def has_turn(self) -> bool:
        """Whether the engine is in the middle of its texts."""
        return self._turn is not None

    def advance(self, engine: Engine) -> None:
        """One computation of this request's turn, which begins here where it has not. Errors: those of Engine.embed."""
        if self._turn is None:
            batch = self._next_batch()
            self._num_begun += len(batch)
            self._turn = engine.embed(batch)
        self.vectors += [_finish_vector(vector, self.prepared.request) for vector in next(self._turn)]
        if len(self.vectors) == self._num_begun:
            self._turn = None

    def _next_batch(self) -> list[EmbedInput]:
        """The next texts, of as many tokens in all as a turn has; one at the least."""
        batch = [self._waiting.popleft()]
        budget = _TURN_TOKENS - len(batch[0].tokens)
        while self._waiting and len(self._waiting[0].tokens) <= budget:
            batch.append(self._waiting.popleft())
            budget -= len(batch[-1].tokens)
        return batch


class EmbeddingQueue:
    """All requests for vectors of one engine, which take turns. `prepare` may run on any thread.

    Texts of different requests are never computed together: what else runs does not change a vector by a bit.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: dict[int, _Job] = {}

    @property
    def has_work(self) -> bool:
        """Whether any text waits."""
        return bool(self._jobs)

    def prepare(self, request: EmbedRequest) -> PreparedEmbedding:
        """Tokens of a request's texts. Errors: ContextExceeded with both numbers, for a text that must not be cut."""
        window = min(request.window or self._engine.info.embed_window, self._engine.info.embed_window)
        inputs, num_cut = [], 0
        for index, item in enumerate(request.inputs):
            tokens = self._encode(item)
            if len(tokens) > window:
                if not request.truncate:
                    raise ContextExceeded(
                        f"the input length exceeds the context length: input {index} has {len(tokens)} tokens, the "
                        f"window {window}; shorten it or leave truncate on"
                    )
                tokens = self._cut(tokens, window)
                num_cut += 1
            inputs.append(EmbedInput(tokens, request.pooling))
        return PreparedEmbedding(request, inputs, num_cut)

    def start(self, prepared: PreparedEmbedding) -> None:
        """Queue a request's texts."""
        self._jobs[prepared.request.id] = _Job(prepared)

    def abort(self, request_id: int) -> list[Event]:
        """Drop a request; its one terminal event says that the client left."""
        job = self._jobs.pop(request_id, None)
        return [Failed("client_gone", f"cancelled after {len(job.vectors)} vectors")] if job else []

    def step(self) -> list[tuple[int, Event]]:
        """One computation for the request whose turn it is. Returns its events when it is done."""
        request_id, job = next(iter(self._jobs.items()))
        try:
            if not job.is_done:
                job.advance(self._engine)
        except CorralError as error:
            del self._jobs[request_id]
            return [(request_id, Failed(error.code, error.message))]
        if not job.has_turn:
            del self._jobs[request_id]
            if job.is_done:
                return [(request_id, event) for event in _end(job)]
            self._jobs[request_id] = job
        return []

    def fail_all(self, failed: Failed) -> list[tuple[int, Event]]:
        """End every request, when the engine cannot go on."""
        events: list[tuple[int, Event]] = [(request_id, failed) for request_id in self._jobs]
        self._jobs.clear()
        return events

    def _encode(self, item: str | tuple[int, ...] | EmbedPair) -> list[int]:
        tokenizer = self._engine.tokenizer
        if isinstance(item, EmbedPair):
            query, document = (tokenizer.encode(text, parse_special=False) for text in (item.query, item.document))
            return tokenizer.pair(query, document)
        if isinstance(item, str):
            return tokenizer.whole(tokenizer.encode(item, parse_special=False))
        strange = next((token for token in item if not 0 <= token < tokenizer.num_vocab), None)
        if strange is not None:
            raise InvalidRequest(f"input: token {strange} is not in this model's vocabulary of {tokenizer.num_vocab}")
        return list(item) or tokenizer.whole([])

    def _cut(self, tokens: list[int], window: int) -> list[int]:
        """The first tokens, and what the model wants after a text."""
        tokenizer = self._engine.tokenizer
        suffix = tokenizer.whole([])[len(tokenizer.prefix()) :]
        kept = max(0, window - len(suffix)) if tokens[len(tokens) - len(suffix) :] == suffix else window
        return tokens[:kept] + (suffix if kept < window else [])[: window - kept]


def _finish_vector(vector: npt.NDArray[np.float32], request: EmbedRequest) -> bytes:
    import numpy as np  # here: runners that only generate may do without

    wide = vector.astype(np.float64)
    # A score has one dimension and no direction.
    if len(wide) > 1:
        if request.dimensions:
            wide = wide[: request.dimensions]
        length = float(np.sqrt((wide * wide).sum()))
        if request.normalize and length > 0:
            wide = wide / length
    return wide.astype("<f4").tobytes()


def _end(job: _Job) -> list[Event]:
    num_tokens = sum(len(item.tokens) for item in job.prepared.inputs)
    warnings = (f"inputs cut to the window: {job.prepared.num_cut}",) if job.prepared.num_cut else ()
    timings = Timings(prompt_ns=time.monotonic_ns() - job.started_ns)
    return [Embedded(tuple(job.vectors)), Done(FinishReason.STOP, Usage(num_tokens), timings, warnings)]
