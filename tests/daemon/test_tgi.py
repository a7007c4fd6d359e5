"""TGI's bodies to calls and events to its answers, and its errors over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import Failure, InvalidRequest
from corral.daemon.dialects.endpoint import Call
from corral.daemon.dialects.tgi import ENDPOINTS
from corral.daemon.dialects.tgi_encoder import encode_error, find_status
from daemons import RunningDaemon
from dialect_cases import STAMP

READERS = {endpoint.path: endpoint.read for endpoint in ENDPOINTS}


def read(path: str = "/generate", stream: bool | None = None, **parameters: Any) -> Call:
    call = READERS[path]({"inputs": "hi", "stream": stream, "parameters": parameters})
    assert isinstance(call, Call)
    return call


@pytest.mark.parametrize(
    ("path", "parameters", "message"),
    [
        ("/generate", {"max_new_tokens": 0}, "parameters.max_new_tokens must be at least 1, not 0"),
        ("/generate", {"max_new_tokens": "5"}, "parameters.max_new_tokens must be a whole number, not '5'"),
        ("/generate", {"temperature": 0}, "parameters.temperature must be above 0"),
        ("/generate", {"temperature": float("nan")}, "parameters.temperature must be above 0"),
        ("/generate", {"top_k": 0}, "parameters.top_k must be at least 1"),
        ("/generate", {"top_p": 1.5}, "parameters.top_p must be above 0 and at most 1"),
        ("/generate", {"typical_p": 0}, "parameters.typical_p must be above 0"),
        ("/generate", {"seed": -1}, "parameters.seed must be at least 0"),
        ("/generate", {"repetition_penalty": 0}, "parameters.repetition_penalty must be above 0"),
        ("/generate", {"frequency_penalty": 3}, "parameters.frequency_penalty must be from -2 to 2"),
        ("/generate", {"truncate": 0}, "parameters.truncate must be at least 1"),
        ("/generate", {"best_of": 0}, "parameters.best_of must be from 1"),
        ("/generate", {"best_of": 2}, "parameters.best_of needs sampling"),
        ("/generate_stream", {"best_of": 2, "do_sample": True}, "parameters.best_of cannot be streamed"),
        ("/generate_stream", {"decoder_input_details": True}, "decoder_input_details cannot be streamed"),
        ("/generate", {"stop": "x"}, "parameters.stop must be a list, not 'x'"),
        ("/generate", {"grammar": {"type": "ebnf", "value": "x"}}, "grammar.type must be one of"),
        ("/generate", {"grammar": {"type": "json"}}, "grammar.value is missing"),
        ("/generate", {"top_n_tokens": 21}, "parameters.top_n_tokens must be at most 20"),
    ],
)
def test_error_names_what_is_wrong(path: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(path, **parameters)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, {"temperature": 0.0}),
        ({"do_sample": False, "seed": 1}, {"temperature": 0.0, "seed": 1}),
        ({"do_sample": True}, {}),
        ({"top_p": 0.5}, {"top_p": 0.5}),
        ({"do_sample": False, "temperature": 0.5}, {"temperature": 0.5}),
    ],
)
def test_without_sampling_the_likeliest_token_is_taken(parameters: dict[str, Any], options: dict[str, Any]) -> None:
    assert read(**parameters).options == options


def test_root_streams_where_the_body_says_so() -> None:
    assert [read("/", stream=stream).stream for stream in (None, False, True)] == [False, False, True]
    assert read("/generate", stream=True).stream is False
    assert read("/generate_stream").stream is True


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("context_exceeded", 422, "validation"),
        ("model_not_found", 404, "not_found"),
        ("queue_full", 429, "overloaded"),
        ("runner_died", 500, "generation"),
    ],
)
def test_error_has_status_and_type_of_tgi(code: str, status: int, kind: str) -> None:
    error = Failure(code, "why")
    assert find_status(error) == status
    assert msgspec.json.decode(encode_error(error)) == {"error": "why", "error_type": kind}


def test_stream_that_fails_ends_with_an_error() -> None:
    data = ENDPOINTS[0].encoder(read(), STAMP).error(Failure("runner_died", "why"))
    assert data == b'data: {"error":"why","error_type":"generation"}\n\n'


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"inputs": ""},
        {"inputs": "hi", "parameters": {"temperature": "hot"}},
        {"inputs": "hi", "parameters": {"max_new_tokens": 2000}, "num_ctx": 4},
    ],
)
async def test_bad_body_is_422(daemon: RunningDaemon, body: dict[str, Any]) -> None:
    for path in ("/generate", "/generate_stream", "/"):
        status, answer = await daemon.post(path, body)
        assert (status, answer["error_type"]) == (422, "validation")
    status, answer = await daemon.post("/generate", b"{")
    assert (status, answer["error_type"]) == (422, "validation")


async def test_root_still_says_that_something_runs(daemon: RunningDaemon) -> None:
    assert await daemon.call("GET", "/") == (200, "Ollama is running")


async def test_prefill_tells_of_the_prompt(daemon: RunningDaemon) -> None:
    parameters = {"details": True, "decoder_input_details": True}
    _, answer = await daemon.post("/generate", {"inputs": "say x", "parameters": parameters})
    assert answer["generated_text"] == "x"
    assert "".join(token["text"] for token in answer["details"]["prefill"]) == "say x"
    assert [token["id"] for token in answer["details"]["tokens"]] == [ord("x")]
