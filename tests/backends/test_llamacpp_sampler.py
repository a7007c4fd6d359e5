"""Every sampling option on real weights: each does what its paper or llama.cpp's server says."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from corral.backends.llamacpp.engine import load_engine
from corral.backends.protocol import Engine, EngineRequest, StepOutput
from corral.core.types import LoadOptions, LoadSpec, Sampling
from models import smollm2_path

SKY = "The sky is"
SONG = "la la la la la la la la"
ROUND = "The cat sat on the mat. " * 6 + "The cat"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=512, num_parallel=2))
    engine = load_engine(spec, lambda fraction: None)
    yield engine
    engine.close()


def generate(engine: Engine, text: str, **sampling: object) -> list[StepOutput]:
    tokens = engine.tokenizer.encode(text, parse_special=True)
    chosen = Sampling(**sampling)  # type: ignore[arg-type]
    engine.add(EngineRequest(1, tokens, chosen, max_tokens=24, window=512, top_logprobs=20))
    outputs: list[StepOutput] = []
    while engine.has_work:
        outputs += engine.step()
    return outputs


def answer(engine: Engine, text: str, **sampling: object) -> str:
    outputs = generate(engine, text, **sampling)
    return b"".join(engine.tokenizer.piece(output.token) for output in outputs if output.token is not None).decode()


@pytest.mark.parametrize(
    "sampling",
    [
        {"repeat_penalty": 1.8},
        {"presence_penalty": 2.0},
        {"frequency_penalty": 2.0},
    ],
)
def test_penalties_change_a_repetitive_answer(engine: Engine, sampling: dict[str, float]) -> None:
    assert answer(engine, SONG, temperature=0, **sampling) != answer(engine, SONG, temperature=0)


@pytest.mark.parametrize(
    "sampling",
    [
        {"repeat_penalty": 1.8, "repeat_last_n": 0},
        {"dry_multiplier": 5.0, "dry_penalty_last_n": 0},
        {"dry_multiplier": 5.0, "dry_allowed_length": 100},
        {"dry_multiplier": 0.0},
    ],
)
def test_penalty_over_nothing_changes_nothing(engine: Engine, sampling: dict[str, float]) -> None:
    assert answer(engine, SONG, temperature=0, **sampling) == answer(engine, SONG, temperature=0)


def test_dry_ends_what_goes_round_and_breakers_forgive_it(engine: Engine) -> None:
    goes_round = " sat on the mat. The cat sat"
    assert answer(engine, ROUND, temperature=0).startswith(goes_round)
    assert not answer(engine, ROUND, temperature=0, dry_multiplier=5.0).startswith(goes_round)
    # Everything begins anew after these, so nothing is long enough to count as a repetition.
    words = (" sat", " on", " the", " mat", ".", " The", " cat")
    forgiven = answer(engine, ROUND, temperature=0, dry_multiplier=5.0, dry_sequence_breakers=words)
    assert forgiven.startswith(goes_round)


@pytest.mark.parametrize(
    "sampling",
    [
        {"top_k": 1},
        {"top_p": 1e-6},
        {"min_p": 1.0},
        {"top_k": 0, "top_p": 1.0, "top_n_sigma": 1e-4},
        {"mirostat": 1, "mirostat_tau": 1e-3},
        {"mirostat": 2, "mirostat_tau": 1e-3},
    ],
)
def test_narrow_samplers_are_greedy(engine: Engine, sampling: dict[str, float]) -> None:
    assert answer(engine, SKY, temperature=2.0, **sampling) == answer(engine, SKY, temperature=0)


def test_min_keep_widens_a_narrow_sampler(engine: Engine) -> None:
    narrow = {"temperature": 2.0, "top_p": 1e-6, "seed": 1}
    assert answer(engine, SKY, **narrow, min_keep=8) != answer(engine, SKY, **narrow)


def test_typical_p_takes_what_is_near_the_expected_surprise(engine: Engine) -> None:
    # A tiny mass keeps the one token whose surprise is nearest to the entropy, which need not be the likeliest.
    options = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "typical_p": 1e-6}
    first = generate(engine, SKY, **options, seed=1)[0]
    assert first.token == generate(engine, SKY, **options, seed=2)[0].token
    likeliest = first.top[0]
    assert first.token != likeliest[0]
    assert first.logprob < likeliest[1]


def test_xtc_leaves_out_the_likeliest_but_never_below_the_threshold(engine: Engine) -> None:
    threshold = 0.01
    for seed in range(8):
        first = generate(
            engine, SKY, temperature=1.0, top_k=0, top_p=1.0, xtc_probability=1.0, xtc_threshold=threshold, seed=seed
        )[0]
        likely = [token for token, logprob in first.top if logprob >= math.log(threshold)]
        assert len(likely) > 2
        assert first.token not in likely[:-1]
    never = {"temperature": 1.0, "seed": 3}
    assert answer(engine, SKY, **never, xtc_probability=1.0, xtc_threshold=0.6) == answer(engine, SKY, **never)


def test_dynamic_temperature_of_the_whole_range_is_colder_where_the_model_is_sure(engine: Engine) -> None:
    sure = "one two three four five six seven eight nine ten one two three four five six seven"
    options = {"top_k": 0, "top_p": 1.0, "temperature": 1.5}
    fixed = [generate(engine, sure, **options, seed=seed)[0].token for seed in range(12)]
    dynamic = [
        generate(engine, sure, **options, dynatemp_range=1.5, dynatemp_exponent=2.0, seed=seed)[0].token
        for seed in range(12)
    ]
    (expected,) = {output.token for output in generate(engine, sure, temperature=0)[:1]}
    assert dynamic.count(expected) > fixed.count(expected)


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_holds_the_surprise_near_its_target(engine: Engine, version: int) -> None:
    def surprise(tau: float) -> float:
        outputs = [
            output
            for seed in range(4)
            for output in generate(
                engine, SKY, temperature=1.0, mirostat=version, mirostat_tau=tau, seed=seed, ignore_eos=True
            )
        ]
        return -sum(output.logprob for output in outputs) / len(outputs) / math.log(2)

    low, high = surprise(1.0), surprise(5.0)
    assert low < 2.0 < high


@pytest.mark.parametrize("more", [{}, {"mirostat": 1}, {"mirostat": 2}, {"xtc_probability": 0.5}])
def test_seed_repeats_an_answer_and_another_does_not(engine: Engine, more: dict[str, float]) -> None:
    options = {"temperature": 1.0, **more}
    first = answer(engine, SKY, **options, seed=7)
    assert answer(engine, SKY, **options, seed=7) == first
    assert any(answer(engine, SKY, **options, seed=seed) != first for seed in (8, 9))


def test_logit_bias_forbids_and_forces(engine: Engine) -> None:
    token = engine.tokenizer.encode(" purple", parse_special=False)[0]
    assert generate(engine, SKY, temperature=0, logit_bias=((token, 100.0),))[0].token == token
    usual = generate(engine, SKY, temperature=0)[0].token
    assert usual is not None
    assert generate(engine, SKY, temperature=0, logit_bias=((usual, -100.0),))[0].token != usual
