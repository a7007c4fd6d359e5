"""Which slot a prompt gets and what it need not evaluate again; sequences cut into aligned pieces. No model needed."""

from __future__ import annotations

import pytest
from corral.backends.llamacpp.slots import ALIGNMENT, SlotTable

LONG = list(range(10 * ALIGNMENT))


def test_slot_with_the_longest_common_prefix_is_taken() -> None:
    table = SlotTable(2)
    first, _ = table.take([1])
    second, _ = table.take([1])
    first.history, second.history = LONG[:], LONG[: 2 * ALIGNMENT]
    table.give_back(first)
    table.give_back(second)
    slot, reusable = table.take([*LONG, 7])
    assert slot is first
    assert reusable == len(LONG)


def test_slot_idle_for_longest_is_taken_when_none_remembers() -> None:
    table = SlotTable(2)
    first, _ = table.take([1])
    second, _ = table.take([1])
    table.give_back(second)
    table.give_back(first)
    assert table.take([5])[0] is second


@pytest.mark.parametrize(
    ("history", "prompt", "expected"),
    [
        (LONG, LONG, 9 * ALIGNMENT),
        (LONG, LONG[: 3 * ALIGNMENT + 5], 3 * ALIGNMENT),
        (LONG[: 3 * ALIGNMENT + 5], LONG, 3 * ALIGNMENT),
        ([], LONG, 0),
        (LONG, [-1, *LONG], 0),
        (LONG[: ALIGNMENT - 1], LONG, 0),
    ],
)
def test_reuse_is_aligned_and_leaves_the_last_token(history: list[int], prompt: list[int], expected: int) -> None:
    table = SlotTable(1)
    slot, _ = table.take(prompt)
    slot.history = history
    assert slot.reusable(prompt) == expected
