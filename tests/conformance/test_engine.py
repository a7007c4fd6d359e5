"""What every engine must do, whatever runs inside: one suite over the rows of the table of backends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from corral.backends.protocol import EmbedInput, Engine, EngineRequest, StepOutput
from corral.backends.table import BACKENDS, find_engine
from corral.core.events import FinishReason
from corral.core.types import LoadOptions, LoadSpec, Sampling
from models import smollm2_path

WINDOW = 256
MAX_STEPS = 2000
# What needs a model: the fake engine's scripts have no cache and no probabilities.
of_real_weights = pytest.mark.parametrize("engine", sorted(set(BACKENDS) - {"fake"}), indirect=True)


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


def test_answer_is_no_shorter_than_min_tokens(engine: Engine) -> None:
    text = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\n"
    engine.add(ask(engine, 1, text=text, max_tokens=100))
    own = len(run(engine)[1])
    assert own < 60, "the answer ends by itself"
    least = Sampling(temperature=0, min_tokens=own + 20)
    engine.add(ask(engine, 1, text=text, max_tokens=100, sampling=least))
    outputs = run(engine)[1]
    assert len(outputs) > own
    assert not any(output.is_end for output in outputs[: own + 20])


def test_ignored_end_leaves_the_limit(engine: Engine) -> None:
    text = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\n"
    endless = Sampling(temperature=0, ignore_eos=True)
    engine.add(ask(engine, 1, text=text, max_tokens=80, sampling=endless))
    outputs = run(engine)[1]
    assert len(outputs) == 80
    assert outputs[-1].finish is FinishReason.LENGTH
    assert not any(output.is_end for output in outputs)


@of_real_weights
def test_bias_forbids_a_token_and_forces_another(engine: Engine) -> None:
    engine.add(ask(engine, 1, max_tokens=1))
    first = run(engine)[1][0].token
    assert first is not None
    found = []
    for bias in ((first, -100.0), (first + 1, 100.0)):
        engine.add(ask(engine, 1, max_tokens=1, sampling=Sampling(temperature=0, logit_bias=(bias,))))
        found.append(run(engine)[1][0].token)
    assert found[0] != first
    assert found[1] == first + 1


@of_real_weights
def test_second_prompt_takes_what_is_cached_unless_told_otherwise(engine: Engine) -> None:
    text = "A horse came home to a village by the river. " * 8
    counts = []
    for sampling in (Sampling(temperature=0), Sampling(temperature=0, cache_prompt=False)):
        engine.add(ask(engine, 1, text=text))
        answer = [output.token for output in run(engine)[1]]
        engine.add(ask(engine, 2, text=text, sampling=sampling))
        outputs = run(engine)[2]
        assert [output.token for output in outputs] == answer
        counts.append(outputs[0].num_cached)
    assert counts[0] > 50
    assert counts[1] == 0


@of_real_weights
def test_log_probabilities_of_the_prompt_are_those_of_its_continuation(engine: Engine) -> None:
    engine.add(ask(engine, 1, text="The capital of France is", top_logprobs=2, max_tokens=4))
    answer = run(engine)[1]
    prompt = ask(engine, 2, text="The capital of France is")
    tokens = [*prompt.tokens, *(output.token for output in answer if output.token is not None)]
    request = replace(prompt, tokens=tokens, top_logprobs=2, max_tokens=0, prompt_logprobs=True)
    engine.add(request)
    (output,) = run(engine)[2]
    assert len(output.prompt) == len(tokens) - 1
    for (logprob, top), expected in zip(output.prompt[-len(answer) :], answer, strict=True):
        assert logprob == pytest.approx(expected.logprob, abs=0.05)
        assert top[0][0] == expected.token


def test_embedding_tells_texts_apart_and_comes_between_steps(engine: Engine) -> None:
    assert engine.info.embed_window > 0
    tokens = [engine.tokenizer.whole(engine.tokenizer.encode(text, parse_special=False)) for text in ("a b", "c", "c")]
    engine.add(ask(engine, 1, text="The capital of France is"))
    expected = [output.token for output in run(engine)[1]]
    engine.add(ask(engine, 1, text="The capital of France is"))
    engine.step()
    vectors = [vector for found in engine.embed([EmbedInput(each) for each in tokens]) for vector in found]
    assert len({vector.shape for vector in vectors}) == 1
    assert not np.allclose(vectors[0], vectors[1])
    assert np.allclose(vectors[1], vectors[2], atol=1e-3)
    rest = [output.token for output in run(engine)[1]]
    assert rest
    assert rest == expected[-len(rest) :]
