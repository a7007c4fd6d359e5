"""One running request: its slot, its tokens, and how far they are evaluated."""

from __future__ import annotations

from ..protocol import EngineRequest
from .binding import Chain
from .slots import ALIGNMENT, Slot


class RunningSequence:
    """`tokens` is prompt and answer; the first `num_evaluated` of them are in the cache.

    `row` is the row of the current batch whose logits give the next token, -1 when there is none; `prompt_rows` are
    those that tell the log-probabilities of the prompt, gathered in `prompt_logprobs` where they are wanted.
    """

    def __init__(self, request: EngineRequest, slot: Slot, num_cached: int, chain: Chain) -> None:
        self.request = request
        self.slot = slot
        self.chain = chain
        self.tokens = list(request.tokens)
        self.num_evaluated = num_cached
        self.num_cached = num_cached
        self.num_generated = 0
        self.num_shifted = 0
        self.row = -1
        self.prompt_rows = range(0)
        self.prompt_logprobs: list[tuple[float, tuple[tuple[int, float], ...]]] = []

    @property
    def num_pending(self) -> int:
        """Tokens not in the cache yet."""
        return len(self.tokens) - self.num_evaluated

    @property
    def is_decoding(self) -> bool:
        """Whether the prompt is done and tokens come one at a time."""
        return self.num_generated > 0

    @property
    def wants_prompt_logprobs(self) -> bool:
        """Whether the logits of prompt tokens are still to be looked at."""
        return self.request.prompt_logprobs and not self.is_decoding

    def take_prompt(self) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]:
        """The log-probabilities of the prompt, once."""
        found, self.prompt_logprobs = tuple(self.prompt_logprobs), []
        return found

    def next_chunk(self, budget: int, may_split: bool) -> list[int]:
        """The next prompt tokens to evaluate, at most `budget`.

        Pieces end on multiples of ALIGNMENT, and what is left after the last multiple is a piece of its own. Where the
        budget is too small for a piece, it waits for the next batch, unless it `may_split`.
        """
        if self.wants_prompt_logprobs:
            # Logits of every token take much memory: a row of the whole vocabulary each.
            budget = min(budget, ALIGNMENT)
        aligned_end = (len(self.tokens) - 1) // ALIGNMENT * ALIGNMENT
        if self.num_evaluated >= aligned_end:
            size = self.num_pending
        else:
            size = aligned_end - self.num_evaluated
        if size > budget:
            size = budget - budget % ALIGNMENT
            if not size and may_split:
                size = budget
        return self.tokens[self.num_evaluated : self.num_evaluated + size]
