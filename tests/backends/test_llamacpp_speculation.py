"""Guessing ahead: what is guessed, when it pays, and that answers stay as they are without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from corral.backends.llamacpp.engine import load_engine
from corral.backends.llamacpp.speculation import MAX_DRAFT, DecodeCost, NgramDrafter, Speculation, allot_drafts
from corral.backends.protocol import Engine, EngineRequest, StepOutput
from corral.core.types import LoadOptions, LoadSpec, Sampling
from hypothesis import given
from hypothesis import strategies as st
from models import smollm2_path

ROUND = "The quick brown fox jumps over the lazy dog. " * 5
STORY = "<|im_start|>user\nTell me of a horse that came home.<|im_end|>\n<|im_start|>assistant\n"
# Drafts always pay here: another row costs nothing.
FREE = DecodeCost()
FREE.line = lambda: (1.0, 1e-9)  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=256, num_parallel=4))
    engine = load_engine(spec, lambda fraction: None)
    yield engine
    engine.close()


@pytest.fixture(params=["measured", "free"])
def cost(request: pytest.FixtureRequest, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once as it is, and once with guesses that are always tried."""
    if request.param == "free":
        monkeypatch.setattr(engine, "_cost", FREE)
    return str(request.param)


def make_request(engine: Engine, request_id: int, text: str, num_draft: int, **fields: object) -> EngineRequest:
    options = {"temperature": 0, "draft_num_predict": num_draft, **fields}
    max_tokens = options.pop("max_tokens", 48)
    shift = options.pop("shift", True)
    tokens = engine.tokenizer.encode(text, parse_special=True)
    sampling = Sampling(**options)  # type: ignore[arg-type]
    return EngineRequest(
        request_id,
        tokens,
        sampling,
        max_tokens,
        window=256,
        shift=bool(shift),
        top_logprobs=0,  # type: ignore[arg-type]
    )


def run(engine: Engine, *requests: EngineRequest) -> dict[int, list[StepOutput]]:
    for request in requests:
        engine.add(request)
    outputs: defaultdict[int, list[StepOutput]] = defaultdict(list)
    while engine.has_work:
        for output in engine.step():
            outputs[output.id].append(output)
    return outputs


def tokens_of(outputs: list[StepOutput]) -> list[int | None]:
    return [output.token for output in outputs]


def test_guess_is_what_followed_the_same_tokens_last_time() -> None:
    drafter = NgramDrafter()
    assert drafter.propose([1, 2, 3, 4, 5], 4) == []
    assert drafter.propose([1, 2, 3, 4, 5, 9, 3, 4], 2) == [5, 9]
    assert drafter.propose([1, 2, 3, 4, 5, 9, 3, 4, 7, 3, 4], 2) == [7, 3]


def test_longer_match_goes_before_a_later_one() -> None:
    tokens = [1, 2, 3, 4, 5, 8, 3, 4, 6, 1, 2, 3, 4]
    assert NgramDrafter().propose(tokens, 1) == [5]


def test_repetition_is_taken_to_go_on() -> None:
    assert NgramDrafter().propose([7, 8, 7, 8, 7, 8], 5) == [7, 8, 7, 8, 7]


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 8))
def test_guess_of_a_growing_text_is_that_of_the_whole(tokens: list[int], limit: int) -> None:
    growing = NgramDrafter()
    for end in range(len(tokens)):
        growing.propose(tokens[:end], limit)
    guess = growing.propose(tokens, limit)
    assert guess == NgramDrafter().propose(tokens, limit)
    assert len(guess) in (0, limit)


def test_text_that_became_shorter_is_looked_through_anew() -> None:
    drafter = NgramDrafter()
    drafter.propose([1, 2, 3, 1, 2, 3, 1, 2, 3], 2)
    assert drafter.propose([3, 1, 2, 3], 2) == []


def make_speculation(acceptance: float, size: int = 8) -> Speculation:
    speculation = Speculation(NgramDrafter(), size)
    speculation.acceptance = acceptance
    speculation.propose([1, 2] * 10, 100)
    return speculation


def measured_cost(base: float, row: float) -> DecodeCost:
    cost = DecodeCost()
    for num_rows in (1, 2, 4, 8) * 5:
        cost.measure(num_rows, base + row * num_rows)
    return cost


def test_cost_is_the_line_that_was_measured() -> None:
    assert measured_cost(0.004, 0.002).line() == pytest.approx((0.004, 0.002))
    alone = DecodeCost()
    alone.measure(1, 0.008)
    assert alone.line() == pytest.approx((0.004, 0.004))


@pytest.mark.parametrize(
    ("acceptance", "base", "row", "expected"),
    [
        (0.99, 9.0, 0.1, 8),
        (0.0, 9.0, 0.1, 0),
        # A row costs half of a decode: a guess must come true more often than not.
        (0.45, 1.0, 1.0, 0),
        (0.60, 1.0, 1.0, 1),
        (0.99, 0.0, 1.0, 0),
    ],
)
def test_drafts_are_as_long_as_pays(acceptance: float, base: float, row: float, expected: int) -> None:
    speculation = make_speculation(acceptance)
    allot_drafts([speculation], 1, 64, measured_cost(base, row))
    assert speculation.num_tried == len(speculation.draft) == expected


def test_crowd_leaves_room_to_those_whose_guesses_come_true() -> None:
    good, bad = make_speculation(0.9), make_speculation(0.3)
    allot_drafts([good, bad], 2, 6, measured_cost(9.0, 0.1))
    assert (good.num_tried, bad.num_tried) == (4, 0)


def test_acceptance_is_learnt_from_guesses_that_were_not_tried() -> None:
    speculation = make_speculation(0.5)
    for _ in range(20):
        assert not speculation.compare(0, speculation.proposal[0])
    assert speculation.acceptance > 0.9
    assert speculation.num_accepted == 0


@pytest.mark.parametrize("text", [ROUND, STORY])
def test_greedy_answer_is_that_without_guesses(engine: Engine, cost: str, text: str) -> None:
    plain = run(engine, make_request(engine, 1, text, 0))[1]
    guessed = run(engine, make_request(engine, 1, text, 8))[1]
    assert tokens_of(guessed) == tokens_of(plain)
    assert [output.logprob for output in guessed] == pytest.approx([output.logprob for output in plain], abs=1e-4)
    if cost == "free" and text == ROUND:
        assert guessed[-1].num_accepted > len(guessed) / 2
        assert guessed[-1].num_drafted >= guessed[-1].num_accepted


@pytest.mark.parametrize("sampling", [{}, {"repeat_penalty": 1.2}, {"mirostat": 2}])
def test_drawn_answer_is_that_without_guesses(engine: Engine, cost: str, sampling: dict[str, float]) -> None:
    options = {"temperature": 0.9, "seed": 5, **sampling}
    plain = run(engine, make_request(engine, 1, ROUND, 0, **options))[1]
    assert tokens_of(run(engine, make_request(engine, 1, ROUND, 8, **options))[1]) == tokens_of(plain)


def test_crowd_of_guessing_and_others_is_as_each_alone(engine: Engine, cost: str) -> None:
    texts = [(ROUND, 8), (STORY, 0), ("one two three " * 8, 4), (STORY, MAX_DRAFT)]
    alone = [tokens_of(run(engine, make_request(engine, 1, text, num))[1]) for text, num in texts]
    crowd = run(engine, *(make_request(engine, number, *entry) for number, entry in enumerate(texts)))
    assert [tokens_of(crowd[number]) for number in range(len(texts))] == alone


@pytest.mark.parametrize("max_tokens", [1, 2, 7])
def test_answer_is_never_longer_than_it_may_be(engine: Engine, cost: str, max_tokens: int) -> None:
    outputs = run(engine, make_request(engine, 1, ROUND, 8, max_tokens=max_tokens))[1]
    assert len(outputs) == max_tokens
    assert [output.finish is not None for output in outputs] == [False] * (max_tokens - 1) + [True]


@pytest.mark.parametrize("shift", [False, True])
def test_full_window_is_as_without_guesses(engine: Engine, cost: str, shift: bool) -> None:
    text = ROUND + ROUND + ROUND
    options = {"max_tokens": 150, "ignore_eos": True, "shift": shift}
    plain = run(engine, make_request(engine, 1, text, 0, **options))[1]
    guessed = run(engine, make_request(engine, 1, text, 8, **options))[1]
    assert tokens_of(guessed) == tokens_of(plain)
    assert guessed[-1].num_shifted == plain[-1].num_shifted
    assert (guessed[-1].num_shifted > 0) is shift


def test_next_prompt_reuses_what_guesses_left(engine: Engine, cost: str) -> None:
    first = run(engine, make_request(engine, 1, ROUND, 8))[1]
    text = ROUND + b"".join(engine.tokenizer.piece(output.token) for output in first if output.token).decode()
    again = run(engine, make_request(engine, 2, text, 8))[2]
    assert again[0].num_cached > 0
    cold = make_request(engine, 3, text, 0, cache_prompt=False)
    assert tokens_of(again) == tokens_of(run(engine, cold)[3])
