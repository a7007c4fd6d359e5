"""A real encoder from a Modelfile to the official clients: vectors, their forms, ranking, and what it cannot do."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import ollama
import openai
import pytest
from e2e.conftest import Machine
from minilm import minilm_path

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "minilm" / "vectors.json").read_text())
TEXTS = [row["text"] for row in RECORDED if row["text"]]
VECTORS = np.array([row["vector"] for row in RECORDED if row["text"]])
NUM_TOKENS = sum(len(row["tokens"]) for row in RECORDED if row["text"])
CLOSE = 2e-3


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("minilm"))
    (machine.folder / "Modelfile").write_text(f"FROM {minilm_path()}\n")
    created = machine.corral("create", "minilm", "-f", str(machine.folder / "Modelfile"))
    assert created.returncode == 0, created.stderr
    yield machine
    machine.end()


def post(machine: Machine, path: str, **body: object) -> httpx.Response:
    return httpx.post(machine.url + path, json={"model": "minilm", **body}, timeout=60)


def test_ollama_client_gets_vectors_in_order(machine: Machine) -> None:
    answer = ollama.Client(machine.url).embed("minilm", TEXTS)
    assert np.abs(np.array(answer.embeddings) - VECTORS).max() < CLOSE
    assert answer.prompt_eval_count == NUM_TOKENS
    old = ollama.Client(machine.url).embeddings("minilm", TEXTS[0]).embedding
    # The old form gives the model's own length; here it is not 1.
    assert np.abs(np.array(old) / math.hypot(*old) - VECTORS[0]).max() < CLOSE


def test_openai_client_gets_floats_and_base64(machine: Machine) -> None:
    client = openai.OpenAI(base_url=f"{machine.url}/v1", api_key="none")
    floats = client.embeddings.create(model="minilm", input=TEXTS, encoding_format="float")
    assert np.abs(np.array([row.embedding for row in floats.data]) - VECTORS).max() < CLOSE
    assert floats.usage.prompt_tokens == floats.usage.total_tokens == NUM_TOKENS
    tokens = [row["tokens"] for row in RECORDED if row["text"]]
    of_tokens = client.embeddings.create(model="minilm", input=tokens)
    assert np.abs(np.array([row.embedding for row in of_tokens.data]) - VECTORS).max() < CLOSE
    packed = post(machine, "/v1/embeddings", input=TEXTS[0], encoding_format="base64", dimensions=64).json()
    vector = np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), "<f4")
    assert np.abs(vector - VECTORS[0][:64] / np.linalg.norm(VECTORS[0][:64])).max() < CLOSE


def test_documents_are_ranked_by_meaning(machine: Machine) -> None:
    documents = ["Interest rates rose.", "A kitten is sitting on a rug.", "The train was late."]
    answer = post(machine, "/v1/rerank", query="The cat sits on the mat.", documents=documents).json()
    scores = {row["index"]: row["relevance_score"] for row in answer["results"]}
    assert answer["results"][0]["index"] == 1
    assert scores[1] > 0.5 > scores[0]


def test_long_text_is_cut_to_the_window_of_training(machine: Machine) -> None:
    cut = post(machine, "/api/embed", input="horse " * 900)
    assert cut.json()["prompt_eval_count"] == 512
    assert cut.json()["warnings"] == ["inputs cut to the window: 1"]
    refused = post(machine, "/api/embed", input="horse " * 900, truncate=False)
    assert refused.status_code == 400
    assert "the input length exceeds the context length" in refused.json()["error"]


def test_encoder_says_what_it_is(machine: Machine) -> None:
    shown = post(machine, "/api/show").json()
    assert shown["capabilities"] == ["embedding"]
    assert shown["details"]["family"] == "bert"
    for path, body in {"generate": {"prompt": "a"}, "chat": {"messages": [{"role": "user", "content": "a"}]}}.items():
        refused = post(machine, f"/api/{path}", **body)
        assert refused.status_code == 400
        assert refused.json()["error"].startswith(f'"minilm" does not support {path}')


def test_empty_input_loads_and_ps_tells(machine: Machine) -> None:
    assert post(machine, "/api/embed", input=[]).json()["embeddings"] == []
    (loaded,) = httpx.get(f"{machine.url}/api/ps").json()["models"]
    assert loaded["name"] == "minilm:latest"
    assert 40e6 < loaded["size"] < 120e6
    missing = post(machine, "/api/embed", model="nobody", input="a")
    assert (missing.status_code, missing.json()["error"]) == (404, 'model "nobody" not found, try pulling it first')
