"""Slots of the KV cache: which sequence holds which, what each remembers, and which one the next prompt gets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import NamedTuple

from ..protocol import PlacedPicture
from .prefix import BLOCK, PrefixIndex, block_keys, chain_key, root_key


def aligned_end(num_tokens: int) -> int:
    """How much of a prompt is evaluated in whole blocks. What follows is its tail, of 2 to 65 tokens.

    A tail of one token would go through yet another path of llama.cpp's attention.
    """
    return max(0, (num_tokens - 2) // BLOCK * BLOCK)


class Prompt:
    """The tokens of a prompt, and the keys of its blocks. `salt` tells apart what gives other numbers for them."""

    def __init__(self, tokens: Sequence[int], salt: Hashable = None, pictures: Sequence[PlacedPicture] = ()) -> None:
        self.tokens = tokens
        self.salt = salt
        self.pictures = pictures
        self.keys = block_keys(tokens, salt)

    def whole(self, num_tokens: int) -> int:
        """At most so many tokens, without the beginning of a picture: pictures are evaluated wholly."""
        return next((entry.start for entry in self.pictures if entry.start < num_tokens < entry.end), num_tokens)


class Slot:
    """One sequence of the context. `tokens` is what its cache holds or will, `num_held` how many of them it does.

    Of those, `num_aligned` were evaluated in whole blocks. The first `num_prompt` tokens, with `prompt_keys`, were the
    prompt. Only the SlotTable and the sequence that runs in it write.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.tokens: list[int] = []
        self.salt: Hashable = None
        self.num_held = 0
        self.num_aligned = 0
        self.num_prompt = 0
        self.prompt_keys: list[int] = []
        self.keys: list[int] = []
        self.last_used = 0
        self.is_idle = True

    def common(self, prompt: Prompt, num_blocks: int, num_tokens: int) -> int:
        """How many tokens of a prompt stand at the beginning of the first `num_tokens` of this slot's.

        `num_blocks` are known to have equal keys.
        """
        if prompt.salt != self.salt:
            return 0
        limit = min(num_tokens, len(prompt.tokens))
        start = num_blocks * BLOCK
        if start > limit or self.tokens[:start] != list(prompt.tokens[:start]):
            start = 0
        return next((at for at in range(start, limit) if self.tokens[at] != prompt.tokens[at]), limit)


class Placement(NamedTuple):
    """Where a prompt goes, and how many of its tokens need not be evaluated: those that `source` holds."""

    slot: Slot
    source: Slot
    num_reused: int


class SlotTable:
    """All slots, which are idle, and what they hold.

    `can_cut` is False for memories that cannot forget their last tokens, those of recurrent models: they are of use
    only to prompts that go on from all that they hold.
    """

    def __init__(self, num_slots: int, can_cut: bool = True) -> None:
        self.slots = [Slot(index) for index in range(num_slots)]
        self._index = PrefixIndex()
        self._can_cut = can_cut
        self._clock = 0

    @property
    def has_idle(self) -> bool:
        """Whether another sequence can start."""
        return any(slot.is_idle for slot in self.slots)

    def place(self, prompt: Prompt) -> Placement | None:
        """The slot for a prompt, at least one of which is idle.

        None when a running sequence is about to evaluate more of the prompt's beginning than anyone holds yet: the
        prompt is better off when it waits for that.
        """
        source, num_reused = self._find_source(prompt)
        if self._is_coming(prompt, num_reused):
            return None
        return Placement(self._find_target(source, num_reused), source, num_reused)

    def occupy(self, placement: Placement, prompt: Prompt, num_reused: int) -> None:
        """Give a slot to a prompt; its cache now holds `num_reused` tokens of it."""
        slot, source = placement.slot, placement.source
        num_aligned = min(source.num_aligned, num_reused)
        self._index.discard(slot.index, slot.keys)
        slot.tokens = list(prompt.tokens)
        slot.salt = prompt.salt
        slot.num_held = num_reused
        slot.num_aligned = num_aligned
        slot.num_prompt = len(prompt.tokens)
        slot.prompt_keys = prompt.keys
        slot.keys = prompt.keys[: num_reused // BLOCK]
        self._index.add(slot.index, slot.keys)
        slot.is_idle = False

    def advance(self, slot: Slot, num_tokens: int) -> None:
        """Note that the next tokens of a slot are in its cache."""
        is_whole = slot.num_aligned == slot.num_held and num_tokens % BLOCK == 0
        slot.num_held += num_tokens
        if is_whole:
            slot.num_aligned = slot.num_held
        for start in range(len(slot.keys) * BLOCK, slot.num_held // BLOCK * BLOCK, BLOCK):
            parent = slot.keys[-1] if slot.keys else root_key(slot.salt)
            key = chain_key(parent, slot.tokens[start : start + BLOCK])
            slot.keys.append(key)
            self._index.add(slot.index, [key])

    def cut(self, slot: Slot, start: int, end: int) -> None:
        """Drop tokens [start, end) of a running sequence whose window was shifted. Nobody reuses what is left."""
        self._index.discard(slot.index, slot.keys)
        slot.keys, slot.prompt_keys = [], []
        slot.salt = object()
        del slot.tokens[start:end]
        slot.num_held -= end - start

    def give_back(self, slot: Slot) -> None:
        """Make a slot idle again; what it holds stays."""
        del slot.tokens[slot.num_held :]
        self._clock += 1
        slot.last_used = self._clock
        slot.is_idle = True

    def _find_source(self, prompt: Prompt) -> tuple[Slot, int]:
        num_blocks, holders = self._index.find(prompt.keys)
        candidates = [self.slots[index] for index in holders] or self.slots
        found = [(self._reusable(slot, prompt, num_blocks), slot.is_idle, slot.last_used, slot) for slot in candidates]
        num_reused, _, _, source = max(found, key=lambda entry: entry[:3])
        return source, num_reused

    def _reusable(self, slot: Slot, prompt: Prompt, num_blocks: int) -> int:
        """How many tokens need not be evaluated again, such that the others give the same numbers as without a cache.

        Tokens that the model generated count like a prompt's tail, although they were evaluated one at a time.
        """
        common = slot.common(prompt, num_blocks, slot.num_held)
        if not self._can_cut:
            return common if common == slot.num_held < len(prompt.tokens) else 0
        end = aligned_end(len(prompt.tokens))
        common = max(0, min(common, len(prompt.tokens) - 2))
        if slot.num_aligned <= end <= common:
            return prompt.whole(common)
        return prompt.whole(min(common, end) // BLOCK * BLOCK)

    def _is_coming(self, prompt: Prompt, num_reused: int) -> bool:
        """Whether a running sequence will hold more whole blocks of the prompt than anyone does now."""
        if not self._can_cut:
            return False
        for slot in self.slots:
            if slot.is_idle or slot.num_held >= slot.num_prompt:
                continue
            pairs = zip(prompt.keys, slot.prompt_keys, strict=False)
            num_shared = BLOCK * sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            ends = aligned_end(len(prompt.tokens)), aligned_end(slot.num_prompt)
            if max(slot.num_held, num_reused) < min(num_shared, *ends):
                return True
        return False

    def _find_target(self, source: Slot, num_reused: int) -> Slot:
        """An idle slot: the source itself where little of it is lost, else one of those not used for longest.

        Among these it is the one next to most running slots: llama.cpp computes neighbours together.
        """
        idle = sorted((slot for slot in self.slots if slot.is_idle), key=lambda slot: (slot.last_used, slot.index))
        if source.is_idle and (len(idle) == 1 or source.num_held - num_reused < num_reused):
            return source
        others = [slot for slot in idle if slot is not source or not num_reused]
        return max(others[: (len(others) + 1) // 2], key=self._count_neighbours)

    def _count_neighbours(self, slot: Slot) -> int:
        beside = [index for index in (slot.index - 1, slot.index + 1) if 0 <= index < len(self.slots)]
        return sum(not self.slots[index].is_idle for index in beside)
