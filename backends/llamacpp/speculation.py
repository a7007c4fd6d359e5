"""Guessing ahead: drafts of the next tokens, and how long they may be to pay. Pure.

A drafted token counts only if the sampler then chooses just it from the model's own logits, so that answers are
distributed as without drafts (Leviathan et al. 2023, for drafts without probabilities), and greedy ones the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

# Longest draft.
MAX_DRAFT = 16
# How many tokens must have come before in the same order for what followed then to be a guess, the longest first.
_SIZES = (4, 2)
# How much a single observation weighs: acceptance changes within a paragraph, costs do not.
_ACCEPTANCE_WEIGHT = 0.1
_COST_DECAY = 0.98


class Drafter(Protocol):
    """Guesses how a sequence goes on."""

    def propose(self, tokens: Sequence[int], limit: int) -> list[int]:
        """At most `limit` tokens that may follow."""
        ...


class NgramDrafter:
    """Guesses that what followed the last few tokens before follows again (prompt lookup decoding, Saxena 2023)."""

    def __init__(self) -> None:
        self._followers: dict[tuple[int, ...], int] = {}
        self._num_seen = 0

    def propose(self, tokens: Sequence[int], limit: int) -> list[int]:
        """What stood behind the latest earlier place with the same last tokens; repetitions are taken to go on."""
        if len(tokens) < self._num_seen:
            # The window was shifted: places have moved.
            self._followers.clear()
            self._num_seen = 0
        for end in range(self._num_seen, len(tokens)):
            for size in _SIZES:
                if end >= size:
                    self._followers[tuple(tokens[end - size : end])] = end
        self._num_seen = len(tokens)
        for size in _SIZES:
            start = self._followers.get(tuple(tokens[-size:]))
            if start is not None:
                period = len(tokens) - start
                found = [tokens[start + offset % period] for offset in range(limit)]
                # What stands for pictures is negative, and no model says it.
                return list(takewhile(lambda token: token >= 0, found))
        return []


class Speculation:
    """The drafts of one sequence. `limit` is the most tokens that its request lets guess, `acceptance` what came true.

    Guesses are compared with what came also where they were not tried, so that acceptance is known before it costs.
    """

    def __init__(self, drafter: Drafter, limit: int) -> None:
        self._drafter = drafter
        self._limit = min(limit, MAX_DRAFT)
        self.acceptance = 0.5
        self.proposal: list[int] = []
        self.num_tried = 0
        self.num_drafted = 0
        self.num_accepted = 0

    def propose(self, tokens: Sequence[int], room: int) -> None:
        """Guess anew; `room` is how many tokens more than one may come."""
        self.num_tried = 0
        self.proposal = self._drafter.propose(tokens, self._limit)[: max(0, room)]

    @property
    def draft(self) -> list[int]:
        """The part of the proposal that is tried now."""
        return self.proposal[: self.num_tried]

    def compare(self, position: int, token: int) -> bool:
        """Take note of the token that came at a position of the proposal. True when it was drafted there."""
        if position >= len(self.proposal):
            return False
        is_hit = self.proposal[position] == token
        self.acceptance += _ACCEPTANCE_WEIGHT * (is_hit - self.acceptance)
        is_accepted = is_hit and position < self.num_tried
        self.num_accepted += is_accepted
        return is_accepted


class DecodeCost:
    """Seconds of a decode by its rows, as a line through what was measured lately."""

    def __init__(self) -> None:
        self._weight = self._rows = self._seconds = self._squares = self._products = 0.0

    def measure(self, num_rows: int, seconds: float) -> None:
        """Take note of how long a decode of answers took."""
        self._weight = _COST_DECAY * self._weight + 1
        self._rows = _COST_DECAY * self._rows + num_rows
        self._seconds = _COST_DECAY * self._seconds + seconds
        self._squares = _COST_DECAY * self._squares + num_rows * num_rows
        self._products = _COST_DECAY * self._products + num_rows * seconds

    def line(self) -> tuple[float, float]:
        """Seconds of a decode without rows and of each row. Half and half while only one number of rows was seen."""
        if not self._weight:
            return 1.0, 1.0
        mean_rows, mean_seconds = self._rows / self._weight, self._seconds / self._weight
        variance = self._squares / self._weight - mean_rows**2
        if variance < 1e-3:
            return mean_seconds / 2, mean_seconds / 2 / mean_rows
        slope = (self._products / self._weight - mean_rows * mean_seconds) / variance
        slope = min(max(slope, 0.0), mean_seconds / mean_rows)
        return mean_seconds - slope * mean_rows, slope


def allot_drafts(speculations: Sequence[Speculation], num_sequences: int, max_rows: int, cost: DecodeCost) -> None:
    """Choose how much of each proposal is tried: what raises the expected tokens a second of the whole decode.

    A guess j tokens ahead comes true with the j-th power of the acceptance. The likeliest is added while its part of a
    token is worth its row at the rate so far.
    """
    base, row = cost.line()
    seconds, expected = base + row * num_sequences, float(num_sequences)
    for _ in range(max_rows - num_sequences):
        open_ones = [entry for entry in speculations if entry.num_tried < len(entry.proposal)]
        if not open_ones:
            break
        best = max(open_ones, key=lambda entry: entry.acceptance ** (entry.num_tried + 1))
        gain = best.acceptance ** (best.num_tried + 1)
        if gain * seconds <= row * expected:
            break
        best.num_tried += 1
        expected += gain
        seconds += row
    for entry in speculations:
        entry.num_drafted += entry.num_tried
