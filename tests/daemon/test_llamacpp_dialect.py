"""llama.cpp's /completion and /infill: bodies to calls, events to answers, and the whole path on the fake engine."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import ContextExceeded, Failure, InvalidRequest
from corral.daemon.dialects.llamacpp import ENDPOINTS
from corral.daemon.dialects.llamacpp_encoder import encode_error
from daemons import RunningDaemon
from dialect_cases import STAMP

READERS = {endpoint.path: endpoint.read for endpoint in ENDPOINTS}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/completion", {}, "prompt is required"),
        ("/completion", {"prompt": []}, "prompt must hold from 1 to"),
        ("/completion", {"prompt": {"prompt_string": "x"}}, "prompt must be a string or a list"),
        ("/completion", {"prompt": [1, "a"]}, "texts and tokens cannot be mixed"),
        ("/completion", {"prompt": ["a", [1, "b"]]}, "texts and tokens cannot be mixed"),
        ("/completion", {"prompt": [-1]}, "prompt[0] must be"),
        ("/completion", {"prompt": "a", "n_predict": 1.5}, 'option "num_predict" must be of type int, not 1.5'),
        ("/completion", {"prompt": "a", "n_probs": 21}, "n_probs must be at most 20"),
        ("/completion", {"prompt": "a", "logit_bias": [["x", 1]]}, "logit_bias"),
        ("/completion", {"prompt": "a", "json_schema": {}, "grammar": "root ::= x"}, "cannot both hold"),
        ("/infill", {"prompt": "a"}, "input_prefix and input_suffix are missing"),
        ("/infill", {"input_prefix": "a", "input_extra": [{"filename": "x"}]}, "input_extra[0]"),
    ],
)
def test_error_names_what_is_wrong(path: str, body: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        READERS[path](body)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("why"), "invalid_request_error"),
        (ContextExceeded("why"), "exceed_context_size_error"),
        (Failure("model_not_found", "why"), "not_found_error"),
        (Failure("queue_full", "why"), "unavailable_error"),
        (Failure("runner_died", "why"), "server_error"),
    ],
)
def test_error_has_code_and_type(error: Any, kind: str) -> None:
    row = {"code": error.status, "message": "why", "type": kind}
    assert msgspec.json.decode(encode_error(error)) == {"error": row}


def test_stream_that_fails_ends_with_an_error() -> None:
    encoder = ENDPOINTS[0].encoder(READERS["/completion"]({"prompt": "a"}), STAMP)
    assert encoder.error(InvalidRequest("why")).startswith(b'data: {"error":{"code":400,')


async def events(daemon: RunningDaemon, path: str, body: dict[str, Any]) -> list[Any]:
    async with daemon.http.post(daemon.url + path, json=body | {"stream": True}) as response:
        assert response.content_type == "text/event-stream"
        data = (await response.read()).decode()
    return [msgspec.json.decode(line.removeprefix("data: ")) for line in data.split("\n\n") if line]


@pytest.mark.parametrize("path", ["/completion", "/completions"])
async def test_completion_of_a_text(daemon: RunningDaemon, path: str) -> None:
    status, answer = await daemon.post(path, {"prompt": "say hello", "stop": ["l"], "n_predict": 20})
    assert status == 200
    assert (answer["content"], answer["stop"], answer["stop_type"], answer["stopping_word"]) == (
        "he",
        True,
        "word",
        "l",
    )
    assert answer["tokens_evaluated"] == len("say hello")
    chunks = await events(daemon, path, {"prompt": "say hello", "n_predict": 2})
    assert "".join(chunk["content"] for chunk in chunks) == "he"
    assert [chunk["stop"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1]["stop_type"] == "limit"


async def test_completion_of_tokens_gives_tokens(daemon: RunningDaemon) -> None:
    body = {"prompt": list(b"say hi"), "return_tokens": True, "n_probs": 1}
    _, answer = await daemon.post("/completion", body)
    assert answer["tokens"] == list(b"hi")
    assert [row["logprob"] for row in answer["completion_probabilities"]] == [-0.5, -0.5]
    chunks = await events(daemon, "/completion", body)
    assert [token for chunk in chunks for token in chunk["tokens"]] == list(b"hi")


async def test_completion_of_several_prompts_is_a_list(daemon: RunningDaemon) -> None:
    _, answers = await daemon.post("/completion", {"prompt": ["say one", "say two"]})
    assert [answer["content"] for answer in answers] == ["one", "two"]


async def test_completion_keeps_to_a_grammar(daemon: RunningDaemon) -> None:
    _, answer = await daemon.post("/completion", {"prompt": "say hello", "grammar": 'root ::= "yes"', "n_predict": 9})
    assert answer["content"] == "yes"


async def test_infill_needs_a_template_that_knows_it(daemon: RunningDaemon) -> None:
    body = {"input_prefix": "x = ", "input_suffix": "\nsay y", "prompt": "1", "n_predict": 9}
    status, answer = await daemon.post("/infill", {"model": "fake", **body})
    assert status == 400
    assert "does not support insert" in answer["error"]["message"]
    await daemon.create("filler", template="{{ .Prompt }}{{ .Suffix }}{{ .Response }}")
    _, answer = await daemon.post("/infill", {"model": "filler", **body})
    assert (answer["content"], answer["prompt"]) == ("y", "x = 1")
    chunks = await events(daemon, "/infill", {"model": "filler", **body})
    assert "".join(chunk["content"] for chunk in chunks) == "y"
