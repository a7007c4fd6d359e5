"""Slots of the KV cache: which sequence holds which, and what an idle one still remembers for the next prompt."""

from __future__ import annotations

from collections.abc import Sequence

# llama.cpp's attention on the CPU rounds differently for fewer than 64 tokens at once (measured: otherwise any split of
# a prompt gives the same bits). Prompts are evaluated in pieces that end on multiples of this, and reuse ends there
# too, so that a prompt's tokens come out the same whether the part before them was in the cache or not.
ALIGNMENT = 64


class Slot:
    """One sequence of the context. `history` is what its cache holds, token by token from position 0."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.history: list[int] = []
        self.last_used = 0

    def reusable(self, tokens: Sequence[int]) -> int:
        """How many tokens of a prompt need not be evaluated again: the common prefix, aligned, short of the last."""
        limit = max(0, min(len(self.history), len(tokens) - 1))
        common = next((at for at in range(limit) if self.history[at] != tokens[at]), limit)
        return common - common % ALIGNMENT


class SlotTable:
    """All slots, and which are idle."""

    def __init__(self, num_slots: int) -> None:
        self._idle = [Slot(index) for index in range(num_slots)]
        self._clock = 0

    @property
    def has_idle(self) -> bool:
        """Whether another sequence can start."""
        return bool(self._idle)

    def take(self, tokens: Sequence[int]) -> tuple[Slot, int]:
        """The idle slot that remembers most of a prompt, else the one idle for longest, and what it remembers."""
        remembered = [(slot.reusable(tokens), -slot.last_used, slot) for slot in self._idle]
        reusable, _, slot = max(remembered, key=lambda entry: entry[:2])
        self._idle.remove(slot)
        return slot, reusable

    def give_back(self, slot: Slot) -> None:
        """Make a slot idle again; its history stays."""
        self._clock += 1
        slot.last_used = self._clock
        self._idle.append(slot)
