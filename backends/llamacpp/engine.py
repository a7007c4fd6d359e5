"""The step loop: admit, a token for every answer, pieces of prompts, sample. One context, many sequences."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from ...core.errors import Unsupported
from ...core.events import FinishReason
from ...core.types import LoadOptions, LoadSpec
from ...modelfile.gguf import GGUF, read_gguf
from ..protocol import EmbedInput, Engine, EngineInfo, EngineRequest, PlacedPicture, StepOutput, Vision
from .adapters import Adapters, adapter_set
from .batching import Budget, Piece, decode_batches, prompt_pieces
from .binding.context import Batch, Context
from .binding.errors import start_backend
from .binding.model import Model
from .embedder import Embedder
from .embedding_engine import EmbeddingEngine
from .estimate import MAX_EMBED_WINDOW, num_outputs, plan_load
from .sampler import build_chain, token_logprobs
from .sequence import RunningSequence
from .slots import Placement, Prompt, SlotTable
from .speculation import DecodeCost, allot_drafts
from .tokenizer import LlamaTokenizer
from .vision import PictureReader


class LlamaCppEngine:
    """Continuous batching over llama.cpp: each step is one llama_decode for all answers, and some for prompts.

    llama.cpp would cut a batch that holds both into the same computations, at places that are not ours to choose.
    """

    def __init__(self, model: Model, gguf: GGUF, options: LoadOptions) -> None:
        plan = plan_load(gguf, options, psutil.virtual_memory().available)
        self._model = model
        self._gguf = gguf
        self._num_threads = options.num_thread or free_cores()
        self._context = Context(model, plan.num_ctx, plan.num_parallel, options, self._num_threads)
        self._batch = Batch(self._context.num_batch)
        self._adapters = Adapters(model, self._context)
        self._budget = Budget(self._batch.capacity)
        self._cost = DecodeCost()
        self._max_rows = min(self._batch.capacity, num_outputs(plan.num_parallel))
        self._slots = SlotTable(plan.num_parallel, can_cut=not model.is_recurrent)
        self._waiting: deque[tuple[EngineRequest, Prompt]] = deque()
        self._shortest_first = False
        self._running: list[RunningSequence] = []
        self._embedder: Embedder | None = None
        self._opening = threading.Lock()
        self._reader: PictureReader | None = None
        self._projector_path = ""
        self.tokenizer = LlamaTokenizer(model)
        self.info = EngineInfo(
            num_ctx=plan.num_ctx,
            num_parallel=plan.num_parallel,
            size_bytes=plan.total_bytes,
            size_vram_bytes=0,
            chat_template=model.chat_template,
            embed_window=min(plan.num_ctx, MAX_EMBED_WINDOW),
        )

    @property
    def has_work(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self._running or self._waiting)

    def add(self, request: EngineRequest) -> None:
        """Take a sequence in; it starts when a slot is idle. Errors: LoadFailed, Unsupported for its adapters."""
        adapters = adapter_set(request.adapters, request.sampling)
        self._adapters.load(adapters)
        reuses = request.sampling.cache_prompt and not request.prompt_logprobs
        # A salt of its own keeps a prompt from all that others left.
        prompt = Prompt(request.tokens, adapters if reuses else request.id, request.pictures)
        self._waiting.append((request, prompt))

    def open_projector(self, path: str) -> Vision:
        """What reads pictures; a model has one projector. Errors: LoadFailed, Unsupported."""
        with self._opening:
            if self._reader is None or self._projector_path != path:
                if self._reader is not None:
                    raise Unsupported("the weights are loaded with another projector: stop the model first")
                self._reader, self._projector_path = PictureReader(self._model, path, self._num_threads), path
            return self._reader

    def abort(self, request_id: int) -> None:
        """Drop a sequence, waiting or running."""
        self._waiting = deque(entry for entry in self._waiting if entry[0].id != request_id)
        for sequence in [sequence for sequence in self._running if sequence.request.id == request_id]:
            self._release(sequence)

    def step(self) -> list[StepOutput]:
        """Advance every answer by a token, and prompts by pieces. Errors: RuntimeError when llama.cpp fails."""
        self._admit()
        outputs: list[StepOutput] = []
        is_shared = False
        for pieces in decode_batches(self._running, self._max_rows, self._adapters.in_use):
            is_shared = True
            self._guess(pieces)
            started = time.perf_counter()
            outputs += self._run(pieces)
            self._cost.measure(self._batch.size, time.perf_counter() - started)
        self._shortest_first = not self._shortest_first
        budget = self._budget.tokens(is_shared)
        for piece in prompt_pieces(self._running, budget, self._batch.capacity, self._shortest_first):
            if piece.picture is not None:
                self._look(piece.sequence, piece.picture)
                continue
            started = time.perf_counter()
            outputs += self._run([piece])
            self._budget.measure(len(piece.tokens), time.perf_counter() - started)
        return outputs

    def embed(self, inputs: Sequence[EmbedInput]) -> Iterator[list[npt.NDArray[np.float32]]]:
        """Vectors of texts. The first call makes a context for them, so that who only generates pays nothing."""
        if self._embedder is None:
            self._embedder = Embedder(self._model, self._gguf, self.info.embed_window, self._num_threads)
        return self._embedder.embed(inputs)

    def close(self) -> None:
        """Free contexts and weights."""
        for sequence in list(self._running):
            self._release(sequence)
        if self._embedder is not None:
            self._embedder.close()
        if self._reader is not None:
            self._reader.close()
        self._context.close()
        self._model.close()

    def _admit(self) -> None:
        """Give idle slots in order; who is better off waiting for another's prompt is passed over."""
        passed: deque[tuple[EngineRequest, Prompt]] = deque()
        while self._waiting and self._slots.has_idle:
            request, prompt = self._waiting.popleft()
            placement = self._slots.place(prompt)
            if placement is None:
                passed.append((request, prompt))
                continue
            self._slots.occupy(placement, prompt, self._reuse(placement))
            chain = build_chain(self._model, request.sampling, request.window, request.tokens)
            self._running.append(RunningSequence(request, placement.slot, chain))
        self._waiting.extendleft(reversed(passed))

    def _reuse(self, placement: Placement) -> int:
        """Bring what is reused into the slot and forget the rest. Returns how many tokens the slot holds then."""
        slot, num_reused = placement.slot.index, placement.num_reused
        if num_reused and placement.source is not placement.slot:
            self._context.copy(placement.source.index, slot)
        if self._context.remove(slot, num_reused):
            return num_reused
        # Recurrent memories cannot be cut in the middle.
        self._context.remove(slot, 0)
        return 0

    def _run(self, pieces: Sequence[Piece]) -> list[StepOutput]:
        """Evaluate pieces together, and choose the next token of each sequence that is then complete."""
        self._adapters.use(pieces[0].sequence.adapters)
        self._batch.clear()
        for piece in pieces:
            self._append(piece.sequence, piece.tokens)
        if not self._context.decode(self._batch):
            raise RuntimeError("the KV cache has no room, although every slot is within its window")
        sequences = [piece.sequence for piece in pieces]
        for sequence in sequences:
            if sequence.prompt_rows:
                self._note_prompt(sequence)
        return [output for sequence in sequences for output in self._choose(sequence)]

    def _look(self, sequence: RunningSequence, picture: PlacedPicture) -> None:
        """Evaluate a part of a picture."""
        assert self._reader is not None, "the request was prepared with it"
        self._adapters.use(sequence.adapters)
        self._reader.evaluate(self._context, picture, sequence.slot.num_held, sequence.slot.index)
        self._slots.advance(sequence.slot, picture.end - picture.start)

    def _guess(self, pieces: Sequence[Piece]) -> None:
        """Draft what follows, as far as it pays and memory can forget it again."""
        guessing = [piece.sequence for piece in pieces if piece.sequence.speculation is not None]
        if not guessing or self._model.is_recurrent:
            return
        speculations = []
        for entry in guessing:
            assert entry.speculation is not None
            room = min(entry.request.window - len(entry.tokens), entry.request.max_tokens - entry.num_generated) - 1
            entry.speculation.propose(entry.tokens, room)
            speculations.append(entry.speculation)
        allot_drafts(speculations, len(pieces), self._max_rows, self._cost)

    def _append(self, sequence: RunningSequence, tokens: list[int]) -> None:
        is_last = len(tokens) == sequence.num_pending
        draft = sequence.draft
        wants_all = sequence.wants_prompt_logprobs or bool(draft)
        end = self._batch.add([*tokens, *draft], sequence.slot.num_held, sequence.slot.index, is_last, wants_all)
        row = end - len(draft)
        if sequence.wants_prompt_logprobs:
            sequence.prompt_rows = range(row - len(tokens) + 1, row + 1)
        self._slots.advance(sequence.slot, len(tokens))
        sequence.rows = range(row, end + 1) if is_last else range(0)

    def _choose(self, sequence: RunningSequence) -> Iterator[StepOutput]:
        """The next token of a sequence, and those after it that were guessed rightly."""
        speculation, has_draft = sequence.speculation, len(sequence.rows) > 1
        for position, row in enumerate(sequence.rows):
            output = self._sample(sequence, row)
            token = output.token
            is_guessed = speculation is not None and token is not None and speculation.compare(position, token)
            yield output
            if output.finish or not is_guessed:
                break
            # The guess that came true is in the cache already.
            self._slots.advance(sequence.slot, 1)
        if has_draft and not sequence.slot.is_idle:
            self._context.remove(sequence.slot.index, sequence.slot.num_held)

    def _sample(self, sequence: RunningSequence, row: int) -> StepOutput:
        request = sequence.request
        if request.max_tokens <= 0:
            self._release(sequence)
            prompt = sequence.take_prompt()
            return StepOutput(request.id, None, FinishReason.LENGTH, num_cached=sequence.num_cached, prompt=prompt)
        self._restrict(sequence, row)
        token = sequence.chain.sample(self._context, row)
        if request.constraint is not None:
            request.constraint.accept(token)
        logprob = 0.0
        top: tuple[tuple[int, float], ...] = ()
        if request.top_logprobs is not None:
            logprob, top = token_logprobs(self._context.logits(row), token, request.top_logprobs)
        sequence.tokens.append(token)
        sequence.num_generated += 1
        is_end = self._model.is_end(token)
        finish = FinishReason.STOP if is_end else self._limit(sequence)
        if finish:
            self._release(sequence)
        return StepOutput(
            id=request.id,
            token=token,
            finish=finish,
            is_end=is_end,
            logprob=logprob,
            top=top,
            num_cached=sequence.num_cached,
            num_shifted=sequence.num_shifted,
            num_drafted=sequence.speculation.num_drafted if sequence.speculation else 0,
            num_accepted=sequence.speculation.num_accepted if sequence.speculation else 0,
            prompt=sequence.take_prompt(),
        )

    def _restrict(self, sequence: RunningSequence, row: int) -> None:
        """Forbid tokens that may not come. The sampler chain reads this very memory."""
        request = sequence.request
        may_end = sequence.num_generated >= request.sampling.min_tokens and not request.sampling.ignore_eos
        if may_end and request.constraint is None:
            return
        logits = self._context.logits(row)
        if request.constraint is not None:
            request.constraint.restrict(logits)
        if not may_end:
            ends = self.tokenizer.end_tokens
            kept = logits[ends].copy()
            logits[ends] = -np.inf
            # A grammar that allows nothing else is done.
            if request.constraint is not None and not np.isfinite(logits).any():
                logits[ends] = kept

    def _note_prompt(self, sequence: RunningSequence) -> None:
        """Keep the log-probabilities of the prompt's next tokens, while the logits of this batch are there."""
        tokens, num_top = sequence.request.tokens, sequence.request.top_logprobs or 0
        start = sequence.slot.num_held - len(sequence.prompt_rows)
        for offset, row in enumerate(sequence.prompt_rows):
            following = start + offset + 1
            if following < len(tokens):
                found = token_logprobs(self._context.logits(row), tokens[following], num_top)
                sequence.prompt_logprobs.append(found)
        sequence.prompt_rows = range(0)

    def _limit(self, sequence: RunningSequence) -> FinishReason | None:
        """LENGTH when the answer is as long as it may be; makes room when the window is full and that is wanted."""
        request = sequence.request
        if sequence.num_generated >= request.max_tokens:
            return FinishReason.LENGTH
        if len(sequence.tokens) < request.window:
            return None
        if not (request.shift and self._context.can_shift):
            return FinishReason.LENGTH
        self._shift(sequence)
        return None

    def _shift(self, sequence: RunningSequence) -> None:
        """Drop the older half of what stands between `num_keep` and the end, and move the rest down."""
        num_keep = sequence.request.sampling.num_keep
        keep = len(sequence.request.tokens) if num_keep < 0 else num_keep
        keep = min(keep, sequence.request.window // 2)
        num_held = sequence.slot.num_held
        num_dropped = max(1, (num_held - keep) // 2)
        index = sequence.slot.index
        self._context.remove(index, keep, keep + num_dropped)
        self._context.move(index, keep + num_dropped, num_held, -num_dropped)
        self._slots.cut(sequence.slot, keep, keep + num_dropped)
        sequence.num_shifted += num_dropped

    def _release(self, sequence: RunningSequence) -> None:
        self._running.remove(sequence)
        sequence.chain.close()
        self._slots.give_back(sequence.slot)


def load_engine(spec: LoadSpec, on_progress: Callable[[float], None]) -> Engine:
    """Load a GGUF file: an engine that generates and embeds, or for an embedding model one that only embeds.

    Errors: LoadFailed with llama.cpp's reason.
    """
    start_backend()
    gguf = read_gguf(Path(spec.model_path))
    model = Model(spec.model_path, spec.options, on_progress)
    is_causal = gguf.arch_value("attention.causal") is not False and model.can_decode
    if is_causal and gguf.pooling_type is None:
        return LlamaCppEngine(model, gguf, spec.options)
    return EmbeddingEngine(model, gguf, spec.options, spec.options.num_thread or free_cores())


def free_cores() -> int:
    """Physical cores that this process may use; llama.cpp's spin barriers collapse on more threads than that."""
    return max(1, min(psutil.cpu_count(logical=False) or 1, len(os.sched_getaffinity(0))))
