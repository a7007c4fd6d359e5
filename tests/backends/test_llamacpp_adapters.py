"""LoRA adapters on real weights: several at once, scaled, other ones for each request, and what is refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from corral.backends.llamacpp.engine import load_engine
from corral.backends.protocol import Engine, EngineRequest, StepOutput
from corral.core.errors import LoadFailed
from corral.core.types import LoadOptions, LoadSpec, Sampling
from lora_files import lora_parts, write_lora
from models import smollm2_path

PROMPT = "Once upon a time a horse lived near a river. " * 8 + "One day it met a"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=512, num_parallel=4))
    engine = load_engine(spec, lambda fraction: None)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_lora(tmp_path_factory.mktemp("lora") / "one.gguf", lora_parts(1)))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_lora(tmp_path_factory.mktemp("lora") / "two.gguf", lora_parts(2)))


def make_request(
    engine: Engine, request_id: int, adapters: tuple[str, ...], scales: tuple[float, ...] | None = None
) -> EngineRequest:
    sampling = Sampling(temperature=0, lora_scales=scales, ignore_eos=True)
    tokens = engine.tokenizer.encode(PROMPT, parse_special=False)
    return EngineRequest(request_id, tokens, sampling, max_tokens=12, window=512, adapters=adapters, top_logprobs=10)


def run(engine: Engine, *requests: EngineRequest) -> dict[int, list[StepOutput]]:
    for request in requests:
        engine.add(request)
    found: defaultdict[int, list[StepOutput]] = defaultdict(list)
    while engine.has_work:
        for output in engine.step():
            found[output.id].append(output)
    return found


def likeliest(engine: Engine, adapters: tuple[str, ...], scales: tuple[float, ...] | None = None) -> list[float]:
    """Log-probabilities of the likeliest first tokens."""
    return [logprob for _, logprob in run(engine, make_request(engine, 1, adapters, scales))[1][0].top]


def test_adapter_changes_the_answer_and_leaves_others_alone(engine: Engine, one: str, two: str) -> None:
    plain, changed, other = likeliest(engine, ()), likeliest(engine, (one,)), likeliest(engine, (two,))
    assert changed != pytest.approx(plain, abs=0.05)
    assert other != pytest.approx(plain, abs=0.05)
    assert other != pytest.approx(changed, abs=0.05)
    # What was computed with an adapter is no beginning for a prompt without it.
    assert likeliest(engine, ()) == plain
    assert likeliest(engine, (one,)) == changed


def test_scale_of_nothing_is_no_adapter(engine: Engine, one: str, two: str) -> None:
    assert likeliest(engine, (one,), (0.0,)) == likeliest(engine, ())
    assert likeliest(engine, (one, two), (1.0,)) == likeliest(engine, (one,))
    assert likeliest(engine, (one, two), (0.0, 1.0)) == likeliest(engine, (two,))


def test_half_the_scale_of_twice_the_adapter_is_the_adapter(engine: Engine, one: str, tmp_path: Path) -> None:
    doubled = str(write_lora(tmp_path / "doubled.gguf", [(a, 2 * b) for a, b in lora_parts(1)]))
    assert likeliest(engine, (doubled,), (0.5,)) == pytest.approx(likeliest(engine, (one,)), abs=1e-3)
    assert likeliest(engine, (doubled,)) != pytest.approx(likeliest(engine, (one,)), abs=0.05)


def test_two_adapters_add_up(engine: Engine, one: str, two: str, tmp_path: Path) -> None:
    # Stacked matrices of twice the rank are the sum of both.
    stacked = [
        (np.concatenate([a1, a2]), np.concatenate([b1, b2], axis=1))
        for (a1, b1), (a2, b2) in zip(lora_parts(1), lora_parts(2), strict=True)
    ]
    both = str(write_lora(tmp_path / "both.gguf", stacked))
    assert likeliest(engine, (one, two)) == pytest.approx(likeliest(engine, (both,)), abs=0.05)
    assert likeliest(engine, (one, two)) != pytest.approx(likeliest(engine, (one,)), abs=0.05)


def test_crowd_with_other_adapters_each_gives_what_each_gives_alone(engine: Engine, one: str, two: str) -> None:
    sets: list[tuple[str, ...]] = [(), (one,), (two,), (one, two)]
    alone = [run(engine, make_request(engine, 1, adapters))[1] for adapters in sets]
    crowd = run(engine, *(make_request(engine, number, adapters) for number, adapters in enumerate(sets)))
    for number, expected in enumerate(alone):
        assert [output.token for output in crowd[number]] == [output.token for output in expected]
        assert crowd[number][0].top == expected[0].top


def test_prompt_is_reused_only_with_the_same_adapters(engine: Engine, one: str) -> None:
    def num_cached(scales: tuple[float, ...]) -> int:
        return run(engine, make_request(engine, 1, (one,), scales))[1][0].num_cached

    num_cached((0.7,))
    assert num_cached((0.7,)) > 0
    assert num_cached((0.9,)) == 0


def test_adapter_that_does_not_fit_is_refused_and_the_engine_goes_on(engine: Engine, one: str, tmp_path: Path) -> None:
    other = str(write_lora(tmp_path / "other.gguf", lora_parts(1), architecture="qwen2"))
    with pytest.raises(LoadFailed, match=r"adapter of the model: .*mismatch") as caught:
        engine.add(make_request(engine, 1, (other,)))
    assert str(tmp_path) not in caught.value.message
    assert not engine.has_work
    assert len(run(engine, make_request(engine, 1, (one,)))[1]) == 12
