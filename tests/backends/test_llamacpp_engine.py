"""The llama.cpp engine on real weights: right tokens, batching, caching, sampling, full windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from corral.backends.llamacpp.engine import load_engine
from corral.backends.llamacpp.sampler import token_logprobs
from corral.backends.protocol import Engine, EngineRequest, StepOutput
from corral.core.errors import InvalidGGUF, LoadFailed
from corral.core.events import FinishReason
from corral.core.types import LoadOptions, LoadSpec, Sampling
from daemons import tiny_gguf
from models import smollm2_path

GREEDY = Sampling(temperature=0)
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
LONG = "A horse came home. " * 40


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    fractions: list[float] = []
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=1024, num_parallel=4))
    engine = load_engine(spec, fractions.append)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    yield engine
    engine.close()


def make_request(engine: Engine, request_id: int, text: str, **fields: object) -> EngineRequest:
    tokens = engine.tokenizer.encode(text, parse_special=True)
    defaults: dict[str, object] = {"sampling": GREEDY, "max_tokens": 24, "window": 1024}
    return EngineRequest(id=request_id, tokens=tokens, **{**defaults, **fields})  # type: ignore[arg-type]


def run(engine: Engine, *requests: EngineRequest) -> dict[int, list[StepOutput]]:
    for request in requests:
        engine.add(request)
    outputs: dict[int, list[StepOutput]] = defaultdict(list)
    while engine.has_work:
        for output in engine.step():
            outputs[output.id].append(output)
    return outputs


def answer(engine: Engine, text: str, **fields: object) -> str:
    outputs = run(engine, make_request(engine, 1, text, **fields))[1]
    return b"".join(engine.tokenizer.piece(output.token) for output in outputs if output.token is not None).decode()


def test_greedy_tokens_are_those_of_the_high_level_binding(engine: Engine) -> None:
    from llama_cpp import Llama

    text = CHAT.format("What is the capital of France?")
    ours = [output.token for output in run(engine, make_request(engine, 1, text))[1]]
    reference = Llama(str(smollm2_path()), n_ctx=1024, flash_attn=True, verbose=False)
    tokens = reference.tokenize(text.encode(), add_bos=False, special=True)
    assert tokens == engine.tokenizer.encode(text, parse_special=True)
    expected = []
    for token in reference.generate(tokens, temp=0.0, repeat_penalty=1.0):
        expected.append(token)
        if len(expected) == len(ours):
            break
    assert ours == expected


def test_batched_sequences_do_not_see_each_other(engine: Engine) -> None:
    words = ["Paris", "Berlin", "Tokyo", "Cairo"]
    texts = ["".join(f"The word is {word}. " for _ in range(3)) + "The word is" for word in words]
    outputs = run(engine, *(make_request(engine, number, text) for number, text in enumerate(texts)))
    for number, word in enumerate(words):
        text = b"".join(engine.tokenizer.piece(entry.token) for entry in outputs[number] if entry.token is not None)
        others = [other for other in words if other != word]
        assert word in text.decode()
        assert not any(other in text.decode() for other in others)


def test_long_prompt_does_not_hold_up_a_running_answer(engine: Engine) -> None:
    engine.add(make_request(engine, 1, CHAT.format("Count to 100."), max_tokens=60))
    while not any(output.id == 1 for output in engine.step()):
        pass
    engine.add(make_request(engine, 2, LONG * 4, max_tokens=1))
    steps: list[set[int]] = []
    while not any(2 in ids for ids in steps):
        steps.append({output.id for output in engine.step()})
    assert len(steps) > 3
    assert all(1 in ids for ids in steps)
    engine.abort(1)


def test_prefix_hit_gives_the_same_text_as_a_miss(engine: Engine) -> None:
    # A cold engine, so that the first run is a miss.
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=1024, num_parallel=1))
    cold = load_engine(spec, lambda fraction: None)
    texts = [f"{LONG}{CHAT.format(question)}" for question in ("Who came home?", "Who came home? ", "When?")]
    first = [run(cold, make_request(cold, 1, text, max_tokens=32))[1] for text in texts]
    again = [run(cold, make_request(cold, 1, text, max_tokens=32))[1] for text in texts]
    cold.close()
    assert first[0][0].num_cached == 0
    assert all(outputs[0].num_cached >= 128 for outputs in again)
    assert [[output.token for output in outputs] for outputs in first] == [
        [output.token for output in outputs] for outputs in again
    ]


def test_seed_gives_the_same_answer_whatever_ran_between(engine: Engine) -> None:
    sampling = Sampling(temperature=0.8, seed=42)
    text = CHAT.format("Write two sentences about a cat.")
    first = answer(engine, text, sampling=sampling)
    assert answer(engine, text, sampling=sampling) == first
    answer(engine, "unrelated")
    assert answer(engine, text, sampling=sampling) == first
    assert answer(engine, text, sampling=Sampling(temperature=0.8, seed=43)) != first


def test_no_seed_gives_other_answers(engine: Engine) -> None:
    text = CHAT.format("Invent a name for a village.")
    assert len({answer(engine, text, sampling=Sampling(temperature=1.5)) for _ in range(4)}) > 1


def test_end_token_stops_without_text(engine: Engine) -> None:
    outputs = run(engine, make_request(engine, 1, CHAT.format("Say hi."), max_tokens=200))[1]
    assert outputs[-1].finish is FinishReason.STOP
    assert outputs[-1].is_end
    assert engine.tokenizer.piece(outputs[-1].token or 0) == b""


def test_full_window_ends_the_answer_without_shift(engine: Engine) -> None:
    request = make_request(engine, 1, LONG, window=256, max_tokens=2000, shift=False)
    outputs = run(engine, request)[1]
    assert outputs[-1].finish is FinishReason.LENGTH
    assert len(request.tokens) + len(outputs) == 256


def test_full_window_goes_on_with_shift(engine: Engine) -> None:
    sampling = Sampling(temperature=0, num_keep=4)
    outputs = run(engine, make_request(engine, 1, "one, two, " * 40, window=256, max_tokens=300, sampling=sampling))[1]
    assert outputs[-1].num_shifted > 0 or outputs[-1].finish is FinishReason.STOP
    assert len(outputs) == 300 or outputs[-1].finish is FinishReason.STOP
    # The slot is whole afterwards.
    assert answer(engine, "The sky is") == answer(engine, "The sky is")


def test_logprobs_are_those_of_the_logits(engine: Engine) -> None:
    outputs = run(engine, make_request(engine, 1, "The capital of France is", top_logprobs=5, max_tokens=4))[1]
    for output in outputs:
        values = [logprob for _, logprob in output.top]
        assert values == sorted(values, reverse=True)
        assert output.top[0] == (output.token, pytest.approx(output.logprob))


def test_logprobs_sum_to_one() -> None:
    logits = np.array([1.0, 3.0, 2.0, -1.0], np.float32)
    logprob, top = token_logprobs(logits, 0, 4)
    assert sum(np.exp(value) for _, value in top) == pytest.approx(1)
    assert [token for token, _ in top] == [1, 2, 0, 3]
    assert dict(top)[0] == pytest.approx(logprob)
    assert token_logprobs(logits, 2, 0)[1] == ()


def test_model_without_weights_is_refused_with_the_reason(tmp_path) -> None:
    (tmp_path / "m.gguf").write_bytes(tiny_gguf())
    with pytest.raises(LoadFailed, match=r"cannot load the model: .*") as refused:
        load_engine(LoadSpec("llamacpp", str(tmp_path / "m.gguf"), LoadOptions()), lambda fraction: None)
    assert str(tmp_path) not in refused.value.message


def test_file_that_is_no_model_is_refused(tmp_path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(InvalidGGUF, match="file ends early"):
        load_engine(LoadSpec("llamacpp", str(tmp_path / "m.gguf"), LoadOptions()), lambda fraction: None)


def test_shared_beginning_of_another_prompt_changes_nothing(engine: Engine) -> None:
    texts = [
        f"{'A horse came home to a village by the river. ' * 25}{CHAT.format(question)}"
        for question in ("Who?", "When was it, and why?")
    ]
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=1024, num_parallel=1))
    cold = load_engine(spec, lambda fraction: None)
    alone = run(cold, make_request(cold, 1, texts[1], max_tokens=32, top_logprobs=3))[1]
    cold.close()
    warm = load_engine(spec, lambda fraction: None)
    run(warm, make_request(warm, 1, texts[0], max_tokens=32))
    after = run(warm, make_request(warm, 1, texts[1], max_tokens=32, top_logprobs=3))[1]
    warm.close()
    assert alone[0].num_cached == 0
    assert after[0].num_cached >= 192
    assert [(output.token, output.top) for output in after] == [(output.token, output.top) for output in alone]
