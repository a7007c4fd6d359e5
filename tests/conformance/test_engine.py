"""What every engine must do, whatever runs inside: one suite over the rows of the table of backends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from corral.backends.protocol import Engine, EngineRequest, StepOutput
from corral.backends.table import BACKENDS, find_engine
from corral.core.events import FinishReason
from corral.core.types import LoadOptions, LoadSpec, Sampling
from models import smollm2_path

WINDOW = 256
MAX_STEPS = 2000


@pytest.fixture(scope="module", params=sorted(BACKENDS))
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    options = LoadOptions(num_ctx=WINDOW, num_parallel=2)
    engine = find_engine(request.param)(LoadSpec(request.param, str(smollm2_path()), options), lambda fraction: None)
    yield engine
    engine.close()


def ask(engine: Engine, request_id: int, text: str = "count 50", **fields: object) -> EngineRequest:
    tokens = [*engine.tokenizer.prefix(), *engine.tokenizer.encode(text, parse_special=True)]
    defaults: dict[str, object] = {"sampling": Sampling(temperature=0), "max_tokens": 8, "window": WINDOW}
    return EngineRequest(id=request_id, tokens=tokens, **{**defaults, **fields})  # type: ignore[arg-type]


def run(engine: Engine) -> dict[int, list[StepOutput]]:
    outputs: dict[int, list[StepOutput]] = defaultdict(list)
    for _ in range(MAX_STEPS):
        if not engine.has_work:
            return outputs
        for output in engine.step():
            outputs[output.id].append(output)
    pytest.fail("the engine never comes to an end")


def test_info_is_what_was_asked_for(engine: Engine) -> None:
    assert (engine.info.num_ctx, engine.info.num_parallel) == (WINDOW, 2)
    assert engine.info.size_bytes > 0


def test_tokens_join_to_the_text(engine: Engine) -> None:
    text = "Grüße, 世界! 👨‍👩‍👧 <x>"
    tokens = engine.tokenizer.encode(text, parse_special=False)
    assert b"".join(engine.tokenizer.piece(token) for token in tokens).decode() == text


def test_special_texts_are_tokens_only_when_asked(engine: Engine) -> None:
    special = max(engine.tokenizer.specials, key=len)
    assert len(engine.tokenizer.encode(special, parse_special=True)) == 1
    assert len(engine.tokenizer.encode(special, parse_special=False)) > 1


def test_sequence_finishes_once_and_last(engine: Engine) -> None:
    engine.add(ask(engine, 1))
    outputs = run(engine)[1]
    assert [output.finish is not None for output in outputs] == [False] * (len(outputs) - 1) + [True]
    assert len(outputs) <= 8


def test_max_tokens_0_ends_without_a_token(engine: Engine) -> None:
    engine.add(ask(engine, 1, max_tokens=0))
    assert [(output.token, output.finish) for output in run(engine)[1]] == [(None, FinishReason.LENGTH)]


def test_sequences_advance_together_and_the_rest_waits(engine: Engine) -> None:
    for request_id in (1, 2, 3):
        engine.add(ask(engine, request_id))
    seen: list[set[int]] = []
    while engine.has_work:
        seen.append({output.id for output in engine.step()})
    assert {1, 2} in seen
    assert all(3 not in ids or len(ids) <= 2 for ids in seen)
    assert set().union(*seen) == {1, 2, 3}


def test_aborted_sequence_is_heard_of_no_more(engine: Engine) -> None:
    for request_id in (1, 2, 3):
        engine.add(ask(engine, request_id, max_tokens=50))
    engine.step()
    engine.abort(1)
    engine.abort(3)
    engine.abort(99)
    assert set(run(engine)) == {2}


def test_greedy_answer_is_the_same_each_time(engine: Engine) -> None:
    answers = []
    for request_id in (1, 2, 3):
        engine.add(ask(engine, request_id, text="The capital of France is"))
        answers.append([output.token for output in run(engine)[request_id]])
    assert answers[0] == answers[1] == answers[2]


def test_logprobs_come_when_asked(engine: Engine) -> None:
    engine.add(ask(engine, 1, top_logprobs=1))
    for output in run(engine)[1]:
        assert output.logprob <= 0
        assert [token for token, _ in output.top] == [output.token]
