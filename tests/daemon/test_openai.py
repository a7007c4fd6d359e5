"""OpenAI's bodies to calls, in words that name the field, and events to its objects and chunks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import Failure, InvalidRequest, ModelNotFound
from corral.core.events import Done, Embedded, FinishReason, TextDelta, Usage
from corral.core.options import OPTIONS
from corral.daemon.dialects.endpoint import AnyCall, Call, EmbedCall
from corral.daemon.dialects.openai import ENDPOINTS
from corral.daemon.dialects.openai_bodies import NativeFields
from corral.daemon.dialects.openai_encoder import encode_error
from dialect_cases import STAMP

READERS = {endpoint.path: endpoint.read for endpoint in ENDPOINTS}
ENCODERS = {endpoint.path: endpoint.encoder for endpoint in ENDPOINTS}
HI = {"role": "user", "content": "hi"}
PNG = "data:image/png;base64,iVBORw0KGgo="


def read(path: str, **body: Any) -> AnyCall:
    return READERS[path]({"model": "m", **body})


def chat(**body: Any) -> Call:
    call = read("/v1/chat/completions", **{"messages": [HI], **body})
    assert isinstance(call, Call)
    return call


def test_native_fields_are_all_options() -> None:
    fields = {field.name for field in msgspec.structs.fields(NativeFields)}
    assert set(OPTIONS) <= fields
    assert fields - set(OPTIONS) == {
        *("strict", "options", "keep_alive", "think", "truncate", "shift", "template", "chat_template_kwargs")
    }


@pytest.mark.parametrize("path", READERS)
def test_every_route_takes_native_fields(path: str) -> None:
    call = read(path, messages=[HI], prompt="x", input="x", keep_alive=-1, num_ctx=64, top_k=5)
    assert call.options["num_ctx"] == 64
    assert call.keep_alive == float("inf")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": []}, "[] is too short - 'messages'"),
        ({"messages": None}, "[] is too short - 'messages'"),
        ({"model": ""}, "model is required"),
        ({"model": 1}, "model must be a string, not 1"),
        ({"messages": "hi"}, "messages must be a list, not 'hi'"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role 'robot' must be one of system"),
        ({"messages": [{"content": "x"}]}, "messages[0].role '' must be one of"),
        (
            {"messages": [HI, {"role": "user", "content": []}]},
            "messages[1].content must be a string or a list of parts",
        ),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content must be a string or a list, not 5"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0] must be an object"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "must have a string in `text`"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type must be"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "content[0]: this version takes text"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}
                ]
            },
            "messages[0].content[0].image_url must be a data: URL",
        ),
        (
            {"messages": [{"role": "tool", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}]},
            "messages[0].content: the result of a tool must be text",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}]},
            "messages[0].tool_calls[0].function.arguments must be the text of a JSON object, not '[1]'",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '"\\ud800"'}}]}
                ]
            },
            "messages[0].tool_calls[0].function.arguments must be the text of a JSON object",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "tool_calls[0].function must be an object with a"),
        ({"n": 0}, "n must be at least 1, not 0"),
        ({"n": 129}, "n must be at most 128, not 129"),
        ({"top_logprobs": 21}, "top_logprobs must be at most 20, not 21"),
        ({"max_tokens": -2}, "max_tokens must be at least -1"),
        ({"max_completion_tokens": "5"}, "max_completion_tokens must be a whole number, not '5'"),
        ({"stop": 5}, "stop must be a string or a list, not 5"),
        ({"logit_bias": {"x": 1}}, "logit_bias: ('x', 1) is not a token number"),
        ({"reasoning_effort": "hard"}, "reasoning_effort must be one of none, minimal, low"),
        ({"reasoning": {"effort": "hard"}}, "reasoning.effort must be one of"),
        ({"think": "hard"}, "think must be true, false"),
        ({"top_k": 1.5}, 'option "top_k" must be of type int, not 1.5'),
        ({"num_ctx": 4}, 'option "num_ctx" must be from 8'),
        ({"response_format": {"type": "xml"}}, "response_format.type must be text"),
        ({"response_format": {"type": "json_object"}, "guided_regex": "a"}, "cannot both hold for one answer"),
        ({"modalities": ["text", "audio"]}, "modalities: this version answers in text only"),
        ({"tool_choice": "required"}, "no tools are offered"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "exclude each other"),
    ],
)
def test_chat_names_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chat(**fields)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt": []}, "prompt must be a string, a list of strings"),
        ({"prompt": ["a", 1]}, "prompt must be a string, a list of strings"),
        ({"prompt": [[1], []]}, "all of one kind and none empty"),
        ({"prompt": [-1]}, "prompt[0] must be at least 0, not -1"),
        ({"prompt": [True]}, "prompt[0] must be"),
        ({"prompt": 5}, "prompt must be a string or a list, not 5"),
        ({"prompt": "a", "n": 3, "best_of": 2}, "best_of must be at least n, which is 3, not 2"),
        ({"prompt": "a", "best_of": 2, "stream": True}, "best_of cannot be streamed"),
        ({"prompt": ["a"] * 100, "n": 100}, "are over 2048"),
        ({"prompt": "a", "suffix": "b", "raw": True}, "suffix goes with a prompt of text"),
        ({"prompt": [1], "suffix": "b"}, "suffix goes with a prompt of text"),
        ({"prompt": "a", "template": "t", "raw": True}, "goes with no template"),
        ({"prompt": "a", "logprobs": 21}, "logprobs must be at most 20"),
    ],
)
def test_completion_names_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read("/v1/completions", **fields)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "invalid input"),
        ({"input": []}, "invalid input"),
        ({"input": None}, "invalid input"),
        ({"input": {"a": 1}}, "input must be a string or a list"),
        ({"input": ["a", [1]]}, "all of one kind"),
        ({"input": "a", "encoding_format": "hex"}, 'encoding_format must be "float" or "base64", not \'hex\''),
        ({"input": "a", "dimensions": 0}, "dimensions must be at least 1"),
        ({"input": "a", "pooling": "max"}, "pooling must be one of"),
    ],
)
def test_embedding_names_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read("/v1/embeddings", **fields)
    assert message in refused.value.message


@pytest.mark.parametrize("prompt", [None, "", [""]])
def test_completion_without_text_only_loads(prompt: Any) -> None:
    call = read("/v1/completions", prompt=prompt)
    assert isinstance(call, Call)
    assert call.prompts == ()


@pytest.mark.parametrize(
    ("fields", "think"),
    [
        ({}, None),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "ultra"}, "max"),
        ({"reasoning": {"effort": "medium"}}, "medium"),
        ({"reasoning_effort": "low", "think": False}, False),
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
        ({"chat_template_kwargs": {"enable_thinking": True}}, None),
    ],
)
def test_thinking_is_chosen_by_any_of_its_names(fields: dict[str, Any], think: Any) -> None:
    (prompt,) = chat(**fields).prompts
    assert msgspec.to_builtins(prompt)["think"] == think


def test_fields_without_effect_are_ignored_silently_and_strictly() -> None:
    harmless = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto", "prompt_cache_key": "k"}
    assert chat(**harmless, strict=True).warnings == ()
    with pytest.raises(InvalidRequest, match="verbosity was ignored"):
        chat(verbosity="low", strict=True)


def test_errors_have_the_type_of_their_status() -> None:
    for error, kind in (
        (InvalidRequest("no"), "invalid_request_error"),
        (ModelNotFound("no"), "not_found_error"),
        (Failure("runner_died", "no"), "api_error"),
    ):
        expected = {"message": "no", "type": kind, "param": None, "code": None}
        assert msgspec.json.decode(encode_error(error)) == {"error": expected}
    encoder = ENCODERS["/v1/chat/completions"](chat(), STAMP)
    assert encoder.error(InvalidRequest("no")) == b"data: " + encode_error(InvalidRequest("no")) + b"\n\n"


@pytest.mark.parametrize(
    ("encoding", "vectors"), [(None, [[1.0, 0.5], [0.0, 2.0]]), ("base64", ["AACAPwAAAD8=", "AAAAAAAAAEA="])]
)
def test_vectors_are_numbers_or_base64(encoding: str | None, vectors: list[Any]) -> None:
    call = read("/v1/embeddings", input=["a", "b"], encoding_format=encoding)
    assert isinstance(call, EmbedCall)
    found = Embedded((b"\x00\x00\x80\x3f\x00\x00\x00\x3f", b"\x00\x00\x00\x00\x00\x00\x00\x40"))
    done = Done(FinishReason.STOP, Usage(3))
    answer = msgspec.json.decode(ENCODERS["/v1/embeddings"](call, STAMP).whole([[found, done]]))
    assert answer == {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)],
        "model": "m",
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }


def test_choices_that_are_streamed_side_by_side_keep_apart() -> None:
    encoder = ENCODERS["/v1/chat/completions"](chat(n=2), STAMP)
    data = b"".join(encoder.chunk(TextDelta("x"), choice) for choice in (0, 1, 0, 1))
    chunks = [msgspec.json.decode(line.removeprefix(b"data: ")) for line in data.split(b"\n\n") if line]
    deltas = [(chunk["choices"][0]["index"], chunk["choices"][0]["delta"]) for chunk in chunks]
    first = {"role": "assistant", "content": "x"}
    assert deltas == [(0, first), (1, first), (0, {"content": "x"}), (1, {"content": "x"})]
