"""One running request: its slot, its tokens, and how far they are evaluated."""

from __future__ import annotations

from ..protocol import EngineRequest, PlacedPicture
from .adapters import adapter_set
from .binding.chain import Chain
from .prefix import BLOCK
from .slots import Slot, aligned_end
from .speculation import NgramDrafter, Speculation

# Tails of more than a block are cut in pieces of this, so that all of a tail goes the same way.
_TAIL_PIECE = BLOCK // 2


class RunningSequence:
    """`tokens` is prompt and answer; those that the slot holds are evaluated.

    `rows` are the rows of the current batch whose logits give the next tokens, several where some were guessed;
    `prompt_rows` are those that tell the log-probabilities of the prompt, gathered in `prompt_logprobs` where they are
    wanted.
    """

    def __init__(self, request: EngineRequest, slot: Slot, chain: Chain) -> None:
        self.request = request
        self.slot = slot
        self.chain = chain
        self.adapters = adapter_set(request.adapters, request.sampling)
        self.num_cached = slot.num_held
        self.num_generated = 0
        self.num_shifted = 0
        self.rows = range(0)
        is_guessed = (request.sampling.draft_num_predict or 0) > 0
        self.speculation = Speculation(NgramDrafter(), request.sampling.draft_num_predict or 0) if is_guessed else None
        self.prompt_rows = range(0)
        self.prompt_logprobs: list[tuple[float, tuple[tuple[int, float], ...]]] = []

    @property
    def tokens(self) -> list[int]:
        """Prompt and answer so far."""
        return self.slot.tokens

    @property
    def num_pending(self) -> int:
        """Tokens not in the cache yet."""
        return len(self.slot.tokens) - self.slot.num_held

    @property
    def is_decoding(self) -> bool:
        """Whether the prompt is done and tokens come one at a time."""
        return self.num_generated > 0

    @property
    def wants_prompt_logprobs(self) -> bool:
        """Whether the logits of prompt tokens are still to be looked at."""
        return self.request.prompt_logprobs and not self.is_decoding

    @property
    def draft(self) -> list[int]:
        """Tokens that are guessed to follow, and evaluated with the last one."""
        return self.speculation.draft if self.speculation is not None and self.is_decoding else []

    def take_prompt(self) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]:
        """The log-probabilities of the prompt, once."""
        found, self.prompt_logprobs = tuple(self.prompt_logprobs), []
        return found

    @property
    def next_picture(self) -> PlacedPicture | None:
        """The picture that comes next, or the one after the tokens that do."""
        held = self.slot.num_held
        return next((entry for entry in self.request.pictures if entry.start >= held), None)

    def next_piece(self, budget: int, may_split: bool) -> list[int]:
        """The next prompt tokens to evaluate, at most `budget`: whole blocks, or a piece of the tail.

        Where the budget is too small for either, nothing, unless it `may_split`.
        """
        if self.wants_prompt_logprobs:
            # Logits of every token take much memory: a row of the whole vocabulary each.
            budget = min(budget, BLOCK)
        start, end = self.slot.num_held, aligned_end(len(self.tokens))
        if start < end:
            size = min(end - start, budget // BLOCK * BLOCK)
        else:
            size = self.num_pending if self.num_pending <= BLOCK else _TAIL_PIECE
        if may_split:
            size = min(size or budget, budget)
        if (picture := self.next_picture) is not None:
            size = min(size, picture.start - start)
        return self.tokens[start : start + size] if size <= budget else []
