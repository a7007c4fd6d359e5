"""Which slot a prompt gets, what it need not evaluate again, when it waits; budgets of steps. No model needed."""

from __future__ import annotations

import pytest
from corral.backends.llamacpp.batching import Budget
from corral.backends.llamacpp.prefix import BLOCK, block_keys
from corral.backends.llamacpp.slots import Placement, Prompt, Slot, SlotTable, aligned_end

LONG = list(range(10 * BLOCK))
TAIL = list(range(5000, 5010))


def start(table: SlotTable, tokens: list[int], salt: object = None) -> Slot:
    """Put a prompt into its slot, with nothing evaluated beyond what is reused."""
    prompt = Prompt(tokens, salt)
    placement = table.place(prompt)
    assert placement is not None
    table.occupy(placement, prompt, placement.num_reused)
    return placement.slot


def evaluate(table: SlotTable, slot: Slot) -> None:
    """Evaluate what is left of a prompt, as the engine does: whole blocks, then the tail."""
    while missing := max(0, aligned_end(slot.num_prompt) - slot.num_held):
        table.advance(slot, min(missing, BLOCK))
    while missing := slot.num_prompt - slot.num_held:
        table.advance(slot, min(missing, BLOCK // 2))


def finish(table: SlotTable, tokens: list[int], salt: object = None) -> Slot:
    slot = start(table, tokens, salt)
    evaluate(table, slot)
    table.give_back(slot)
    return slot


def place(table: SlotTable, tokens: list[int], salt: object = None) -> Placement:
    placement = table.place(Prompt(tokens, salt))
    assert placement is not None
    return placement


def test_prompt_that_goes_on_takes_the_slot_that_remembers_it() -> None:
    table = SlotTable(4)
    first = finish(table, [*LONG, *TAIL])
    finish(table, [7, *LONG])
    assert place(table, [*LONG, *TAIL, 1, 2, 3]) == Placement(first, first, len(LONG) + len(TAIL))


def test_short_common_beginning_is_copied_so_that_the_rest_is_not_lost() -> None:
    table = SlotTable(2)
    first = finish(table, LONG)
    placement = place(table, [*LONG[: 2 * BLOCK], *TAIL])
    assert placement.source is first
    assert placement.slot is not first
    assert placement.num_reused == 2 * BLOCK


def test_beginning_is_copied_from_a_sequence_that_runs() -> None:
    table = SlotTable(2)
    first = start(table, [*LONG, *TAIL])
    evaluate(table, first)
    placement = place(table, [*LONG, 1, 2])
    assert placement.source is first
    assert placement.slot is not first
    assert placement.num_reused == len(LONG)


def test_prompt_waits_for_a_beginning_that_another_is_about_to_evaluate() -> None:
    table = SlotTable(2)
    first = start(table, [*LONG, *TAIL])
    table.advance(first, BLOCK)
    assert table.place(Prompt([*LONG, 1, 2])) is None
    assert table.place(Prompt([*LONG[:BLOCK], 1, 2])) is not None
    evaluate(table, first)
    assert place(table, [*LONG, 1, 2]).num_reused == len(LONG)


def test_prompt_whose_leader_is_gone_does_not_wait() -> None:
    table = SlotTable(2)
    first = start(table, [*LONG, *TAIL])
    table.advance(first, BLOCK)
    table.give_back(first)
    assert place(table, [*LONG, 1, 2]).num_reused == BLOCK


def test_slot_idle_for_longest_is_taken_when_none_remembers() -> None:
    table = SlotTable(2)
    first, second = start(table, [1]), start(table, [2])
    table.give_back(second)
    table.give_back(first)
    assert place(table, [5]).slot is second


def test_slot_beside_those_that_run_is_taken_among_the_old() -> None:
    table = SlotTable(8)
    slots = [start(table, [number]) for number in range(8)]
    for index in (7, 5, 3, 1, 6, 0, 2):
        table.give_back(slots[index])
    assert place(table, [9]).slot is slots[5]


def test_prompt_with_another_salt_reuses_nothing() -> None:
    table = SlotTable(2)
    finish(table, LONG, salt="one adapter")
    assert place(table, LONG, salt="another").num_reused == 0
    assert place(table, LONG, salt="one adapter").num_reused > 0


def test_window_that_was_shifted_is_not_reused() -> None:
    table = SlotTable(1)
    slot = start(table, LONG)
    evaluate(table, slot)
    table.cut(slot, 4, 100)
    table.give_back(slot)
    assert place(table, LONG).num_reused == 0
    assert slot.num_held == len(LONG) - 96


def test_prompt_does_not_wait_for_a_window_that_was_shifted() -> None:
    table = SlotTable(2)
    slot = start(table, LONG)
    evaluate(table, slot)
    table.cut(slot, 4, len(LONG) - 4)
    assert place(table, [-1, *LONG]).num_reused == 0


def test_recurrent_memory_is_of_use_only_to_what_goes_on_from_all_of_it() -> None:
    table = SlotTable(2, can_cut=False)
    finish(table, LONG)
    assert place(table, [*LONG, 1]).num_reused == len(LONG)
    assert place(table, LONG[:-1]).num_reused == 0
    assert place(table, LONG).num_reused == 0


@pytest.mark.parametrize(
    ("held", "prompt", "expected"),
    [
        # The same prompt again: all but its last two tokens.
        (LONG, LONG, len(LONG) - 2),
        ([*LONG, *TAIL], [*LONG, *TAIL], len(LONG) + len(TAIL) - 2),
        # Whole blocks were evaluated where this prompt has a tail.
        (LONG, LONG[: 3 * BLOCK + 5], 3 * BLOCK),
        # A tail was evaluated where this prompt has whole blocks.
        (LONG[: 3 * BLOCK + 5], LONG, 3 * BLOCK),
        (LONG[: 3 * BLOCK + 5], [*LONG[: 3 * BLOCK + 3], *TAIL], 3 * BLOCK + 3),
        (LONG, [-1, *LONG], 0),
        (TAIL, [*TAIL[:4], 1, 2, 3], 4),
        (TAIL, TAIL[:1], 0),
    ],
)
def test_reuse_leaves_what_a_cold_prompt_would_evaluate_otherwise(
    held: list[int], prompt: list[int], expected: int
) -> None:
    table = SlotTable(1)
    finish(table, held)
    assert place(table, prompt).num_reused == expected


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 66, 128, 129, 130, 1000])
def test_tail_is_never_one_token_of_a_longer_prompt(length: int) -> None:
    assert aligned_end(length) % BLOCK == 0
    assert length == 1 or 2 <= length - aligned_end(length) <= BLOCK + 1


def test_key_of_a_block_depends_on_all_before_it() -> None:
    keys = block_keys(LONG, None)
    assert len(keys) == 10
    assert block_keys([*LONG, *TAIL], None) == keys
    assert block_keys([-1, *LONG[1:]], None)[-1] != keys[-1]


def test_budget_is_what_is_done_in_time_while_answers_run() -> None:
    budget = Budget(512)
    assert budget.tokens(is_shared=False) == 512
    assert budget.tokens(is_shared=True) == BLOCK
    budget.measure(512, 0.4)
    assert budget.tokens(is_shared=True) == 4 * BLOCK
    budget.measure(512, 0.0001)
    assert budget.tokens(is_shared=True) == 512
