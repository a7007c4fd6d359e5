"""What one step evaluates: a token of every running answer, and pieces of prompts under a budget. No model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..protocol import PlacedPicture
from .adapters import AdapterSet
from .prefix import BLOCK
from .sequence import RunningSequence

# For how long a piece of a prompt may hold up the answers that run, in seconds.
_MAX_PAUSE = 0.2


class Piece(NamedTuple):
    """Tokens of one sequence that are evaluated together, or a picture."""

    sequence: RunningSequence
    tokens: list[int]
    picture: PlacedPicture | None = None


class Budget:
    """How many prompt tokens a step may evaluate: all that a batch takes, or while answers run what is done in time."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._rate = 0.0

    def measure(self, num_tokens: int, seconds: float) -> None:
        """Take note of how long prompt tokens took."""
        rate = num_tokens / max(seconds, 1e-9)
        self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate

    def tokens(self, is_shared: bool) -> int:
        """The budget of a step; `is_shared` when answers run."""
        if not is_shared:
            return self._capacity
        in_time = int(self._rate * _MAX_PAUSE) // BLOCK * BLOCK
        return min(self._capacity, max(BLOCK, in_time))


def decode_batches(
    running: Sequence[RunningSequence], capacity: int, adapters: AdapterSet = ()
) -> Iterator[list[Piece]]:
    """The next token of every answer, in the order of their slots: llama.cpp computes neighbours together.

    A batch holds answers with one set of adapters. Those with `adapters`, which are in use, come first.
    """
    groups: defaultdict[AdapterSet, list[RunningSequence]] = defaultdict(list)
    for entry in running:
        if entry.is_decoding:
            groups[entry.adapters].append(entry)
    for key in sorted(groups, key=lambda key: key != adapters):
        decoding = sorted(groups[key], key=lambda entry: entry.slot.index)
        for start in range(0, len(decoding), capacity):
            yield [Piece(entry, entry.tokens[-1:]) for entry in decoding[start : start + capacity]]


def prompt_pieces(
    running: Sequence[RunningSequence], budget: int, capacity: int, shortest_first: bool
) -> Iterator[Piece]:
    """Pieces of prompts, by age or what is nearly done first. A caller that takes turns holds up no prompt for long.

    Each is to be evaluated before the next is asked for.
    """
    prompts = [entry for entry in running if not entry.is_decoding]
    if shortest_first:
        prompts.sort(key=lambda entry: entry.num_pending)
    may_split = capacity < BLOCK
    for sequence in prompts:
        while budget > 0 and (piece := _next_piece(sequence, budget, may_split)) is not None:
            budget -= len(piece.tokens)
            yield piece
            if sequence.is_decoding or not sequence.num_pending:
                break


def _next_piece(sequence: RunningSequence, budget: int, may_split: bool) -> Piece | None:
    """A picture is evaluated wholly, whatever the budget. None when the budget is too small for anything else."""
    picture = sequence.next_picture
    if picture is not None and picture.start == sequence.slot.num_held:
        return Piece(sequence, picture.part.stand_ins, picture)
    tokens = sequence.next_piece(budget, may_split)
    return Piece(sequence, tokens) if tokens else None
