"""Texts to vectors on real weights: MiniLM against a reference worked out in numpy, SmolLM2 beside generation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from corral.backends.embedding import EmbeddingQueue
from corral.backends.llamacpp.engine import load_engine
from corral.backends.protocol import EmbedInput, Engine, EngineRequest
from corral.core.errors import ContextExceeded, InvalidRequest, Unsupported
from corral.core.events import Done, Embedded, Event, Failed
from corral.core.types import EmbedPair, EmbedRequest, LoadOptions, LoadSpec, Sampling
from minilm import minilm_path, read_vocabulary, read_weights, write_bert
from models import smollm2_path

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "minilm" / "vectors.json").read_text())
ENGLISH = [row for row in RECORDED if row["text"]]
WINDOW = 256
# Matrices in F16 and products in another order cost the last digits.
CLOSE = 2e-3
Vector = np.ndarray


def load(path: Path) -> Engine:
    return load_engine(LoadSpec("llamacpp", str(path), LoadOptions(num_ctx=WINDOW, num_parallel=2)), lambda done: None)


@pytest.fixture(scope="module")
def minilm() -> Iterator[Engine]:
    engine = load_engine(LoadSpec("llamacpp", str(minilm_path()), LoadOptions()), lambda done: None)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def smol() -> Iterator[Engine]:
    engine = load(smollm2_path())
    yield engine
    engine.close()


@pytest.fixture(params=["minilm", "smol"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.getfixturevalue(request.param)


def finish(queue: EmbeddingQueue) -> dict[int, list[Event]]:
    events: dict[int, list[Event]] = {}
    while queue.has_work:
        for request_id, event in queue.step():
            events.setdefault(request_id, []).append(event)
    return events


def embed(engine: Engine, *inputs: Any, **fields: Any) -> tuple[list[Vector], Done]:
    queue = EmbeddingQueue(engine)
    queue.start(queue.prepare(EmbedRequest(1, inputs, **fields)))
    embedded, done = finish(queue)[1]
    assert isinstance(embedded, Embedded)
    assert isinstance(done, Done)
    return read(embedded), done


def read(embedded: Embedded) -> list[Vector]:
    return [np.frombuffer(vector, "<f4") for vector in embedded.vectors]


def compute(engine: Engine, tokens: Sequence[int], pooling: str) -> Vector:
    (vector,) = [vector for vectors in engine.embed([EmbedInput(list(tokens), pooling)]) for vector in vectors]
    return vector


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["text"][:12])
def test_minilm_tokens_and_vector_are_those_of_the_reference(minilm: Engine, row: dict[str, Any]) -> None:
    tokenizer = minilm.tokenizer
    assert tokenizer.whole(tokenizer.encode(row["text"], parse_special=False)) == row["tokens"]
    (vector,), done = embed(minilm, row["text"])
    assert np.abs(vector - row["vector"]).max() < CLOSE
    assert done.usage.prompt_tokens == len(row["tokens"])


def test_many_texts_at_once_keep_their_order(minilm: Engine) -> None:
    rows = ENGLISH * 7
    vectors, done = embed(minilm, *(row["text"] for row in rows))
    for vector, row in zip(vectors, rows, strict=True):
        assert np.abs(vector - row["vector"]).max() < CLOSE
    assert done.usage.prompt_tokens == sum(len(row["tokens"]) for row in rows)


def test_tokens_are_taken_as_they_are(minilm: Engine) -> None:
    (vector,), _ = embed(minilm, tuple(RECORDED[0]["tokens"]))
    assert np.abs(vector - RECORDED[0]["vector"]).max() < CLOSE


def test_token_beyond_the_vocabulary_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="token 999999 is not in this model's vocabulary"):
        embed(engine, (1, 999_999))


def test_long_text_is_cut_and_keeps_what_ends_it(minilm: Engine) -> None:
    text = "horse " * 900
    queue = EmbeddingQueue(minilm)
    (item,) = queue.prepare(EmbedRequest(1, (text,), window=64)).inputs
    assert len(item.tokens) == 64
    whole = minilm.tokenizer.whole([])
    assert [item.tokens[0], item.tokens[-1]] == whole
    _, done = embed(minilm, text)
    assert done.usage.prompt_tokens == minilm.info.embed_window == 512
    assert done.warnings == ("inputs cut to the window: 1",)


def test_long_text_is_refused_with_both_numbers_when_it_must_not_be_cut(engine: Engine) -> None:
    with pytest.raises(ContextExceeded, match=r"input 1 has \d+ tokens, the window 20"):
        embed(engine, "short", "horse " * 900, window=20, truncate=False)


def test_dimensions_cut_and_bring_back_to_length_1(engine: Engine) -> None:
    (whole,), _ = embed(engine, "A horse.")
    (cut,), _ = embed(engine, "A horse.", dimensions=64)
    (more,), _ = embed(engine, "A horse.", dimensions=100_000)
    assert np.allclose(cut, whole[:64] / np.linalg.norm(whole[:64]), atol=1e-6)
    assert np.array_equal(more, whole)
    assert np.isclose(np.linalg.norm(whole), 1)


def test_vectors_keep_their_length_when_asked(engine: Engine) -> None:
    (unit,), _ = embed(engine, "A horse.")
    (kept,), _ = embed(engine, "A horse.", normalize=False)
    assert not np.isclose(np.linalg.norm(kept), 1, atol=0.01)
    assert np.allclose(kept / np.linalg.norm(kept), unit, atol=1e-6)


def test_poolings_are_of_the_same_rows(engine: Engine) -> None:
    tokens = engine.tokenizer.whole(engine.tokenizer.encode("A horse came home.", parse_special=False))
    found = {name: compute(engine, tokens, name) for name in ("mean", "cls", "last")}
    assert len({vector.tobytes() for vector in found.values()}) == 3
    if engine.info.num_parallel > 1:
        # Where a token sees only what stands before it, the last row of each beginning is a row of the whole.
        rows = [compute(engine, tokens[: count + 1], "last") for count in range(len(tokens))]
        assert np.allclose(found["mean"], np.mean(rows, axis=0), atol=0.05)
        assert np.allclose(found["cls"], rows[0], atol=0.05)


def test_unknown_pooling_is_refused(engine: Engine) -> None:
    queue = EmbeddingQueue(engine)
    queue.start(queue.prepare(EmbedRequest(1, ("a",), pooling="max")))
    (failed,) = finish(queue)[1]
    assert isinstance(failed, Failed)
    assert failed.message == "pooling: 'max' is none of mean, cls, last"


def test_requests_take_turns_and_what_else_runs_changes_no_bit(engine: Engine) -> None:
    alone = {number: embed(engine, *texts(number))[0] for number in (1, 2)}
    queue = EmbeddingQueue(engine)
    for number in (1, 2):
        queue.start(queue.prepare(EmbedRequest(number, tuple(texts(number)))))
    events = finish(queue)
    assert list(events) == [2, 1], "the short request does not wait for the long one"
    for number, (embedded, _) in events.items():
        assert isinstance(embedded, Embedded)
        assert all(np.array_equal(one, other) for one, other in zip(read(embedded), alone[number], strict=True))


def texts(number: int) -> list[str]:
    return [f"Horse {count} came home to a village by the river." for count in range(120 if number == 1 else 2)]


def test_aborted_request_ends_once_and_the_next_one_runs(engine: Engine) -> None:
    queue = EmbeddingQueue(engine)
    queue.start(queue.prepare(EmbedRequest(1, tuple(texts(1)))))
    queue.step()
    assert [event.code for event in queue.abort(1) if isinstance(event, Failed)] == ["client_gone"]
    assert queue.abort(1) == []
    assert not queue.has_work
    (after,), _ = embed(engine, "A horse.")
    (before,), _ = embed(engine, "A horse.")
    assert np.array_equal(after, before)


def test_generation_is_the_same_whether_texts_are_embedded_beside_it(smol: Engine) -> None:
    def generate(beside: Sequence[str]) -> list[int | None]:
        tokens = smol.tokenizer.encode("The capital of France is", parse_special=True)
        smol.add(EngineRequest(1, tokens, Sampling(temperature=0, cache_prompt=False), max_tokens=12, window=WINDOW))
        queue = EmbeddingQueue(smol)
        if beside:
            queue.start(queue.prepare(EmbedRequest(2, tuple(beside))))
        found = []
        while smol.has_work:
            found += [output.token for output in smol.step()]
            if queue.has_work:
                queue.step()
        finish(queue)
        return found

    assert generate(texts(1)) == generate([])


def test_encoder_generates_nothing(minilm: Engine) -> None:
    with pytest.raises(Unsupported, match="generates no text"):
        minilm.add(EngineRequest(1, [1], Sampling(), max_tokens=1, window=WINDOW))
    assert not minilm.has_work
    assert minilm.info.size_bytes > 40e6


def test_rank_head_gives_the_score_of_a_pair(tmp_path: Path, minilm: Engine) -> None:
    random = np.random.default_rng(1)
    weights = read_weights()
    size = weights["token_embd.weight"].shape[1]
    head = {
        "cls.weight": random.normal(0, 0.05, (size, size)),
        "cls.bias": random.normal(0, 0.05, size),
        "cls.output.weight": random.normal(0, 0.05, (1, size)),
        "cls.output.bias": random.normal(0, 0.05, 1),
    }
    path = tmp_path / "rank.gguf"
    write_bert(path, read_vocabulary(), weights | head, heads=12, pooling=gguf.PoolingType.RANK)
    engine = load(path)
    try:
        (score, other), done = embed(engine, EmbedPair("horse", "A horse."), EmbedPair("horse", "Interest rates."))
        with pytest.raises(Unsupported, match="rank head gives scores"):
            next(engine.embed([EmbedInput([1, 2], "mean")]))
    finally:
        engine.close()
    for found, document in ((score, "A horse."), (other, "Interest rates.")):
        pair = [minilm.tokenizer.encode(text, parse_special=False) for text in ("horse", document)]
        first = compute(minilm, minilm.tokenizer.pair(*pair), "cls").astype(np.float64)
        inner = np.tanh(head["cls.weight"] @ first + head["cls.bias"])
        assert np.allclose(found, head["cls.output.weight"] @ inner + head["cls.output.bias"], atol=0.01)
    assert done.usage.prompt_tokens > 10
