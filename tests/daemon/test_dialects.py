"""Ollama's bodies to calls: any JSON gives a call or an error of ours, and the words of errors name the field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import CorralError, InvalidRequest
from corral.core.events import Done, FinishReason, TextDelta, Timings, Usage
from corral.core.types import ChatPrompt, TextPrompt
from corral.daemon.dialects.endpoint import Call
from corral.daemon.dialects.fields import parse_json
from corral.daemon.dialects.ollama import ENDPOINTS, parse_chat, parse_generate
from corral.daemon.dialects.ollama_encoder import ChatEncoder, GenerateEncoder
from hypothesis import given
from hypothesis import strategies as st

FIELDS = (
    "model prompt suffix system template context stream raw format keep_alive images options think truncate shift "
    "logprobs top_logprobs messages tools _debug_render_only"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELDS, "role", "content", "stop"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6))
def test_any_body_is_a_call_or_an_error_of_ours(body: dict[str, Any]) -> None:
    for endpoint in ENDPOINTS:
        try:
            call = endpoint.parse({"model": "m", **body})
        except CorralError as error:
            assert 400 <= error.status < 500
        else:
            assert isinstance(call, Call)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_object_or_an_error_of_ours(data: bytes) -> None:
    try:
        assert isinstance(parse_json(data), dict)
    except InvalidRequest as error:
        assert error.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" ", "missing request body"),
        (b"{", "at line 1, column 2"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "too deep"),
        (b'"text"', "must be a JSON object"),
    ],
)
def test_body_that_is_no_object_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_json(data)


def test_nan_passes_to_the_check_of_its_option() -> None:
    assert str(parse_json(b'{"a": NaN}')["a"]) == "nan"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "model is required"),
        ({"model": 1}, "model must be a string, not 1"),
        ({"model": "m", "prompt": ["a"]}, "prompt must be a string"),
        ({"model": "m", "stream": "yes"}, "stream must be true or false"),
        ({"model": "m", "messages": [{}]}, "send them to /api/chat"),
        ({"model": "m", "prompt": "x", "raw": True, "system": "s"}, "raw mode does not support"),
        ({"model": "m", "prompt": "x", "raw": True, "suffix": "s"}, "raw mode does not support suffix"),
        ({"model": "m", "format": 5}, "invalid format"),
        ({"model": "m", "think": "banana"}, "think must be true, false, high, medium, low, max, not 'banana'"),
        ({"model": "m", "think": 1}, "think must be"),
        ({"model": "m", "keep_alive": "5 m"}, "keep_alive '5 m' is not valid"),
        ({"model": "m", "keep_alive": True}, "keep_alive True is not valid"),
        ({"model": "m", "top_logprobs": 21}, "top_logprobs must be a whole number from 0 to 20"),
        ({"model": "m", "context": ["a"]}, None),
        ({"model": "m", "prompt": "x", "context": ["a"]}, "context must be a list of token numbers"),
        ({"model": "m", "options": {"top_k": True}}, 'option "top_k" must be of type int, not True'),
        ({"model": "m", "options": {"num_predict": 4.7}}, 'option "num_predict" must be of type int, not 4.7'),
        (
            {"model": "m", "options": {"temperature": float("nan")}},
            'option "temperature" must be of type float32, not nan',
        ),
        ({"model": "m", "options": {"temperature": [0]}}, 'option "temperature" must be of type float32'),
    ],
)
def test_generate_names_what_is_wrong(body: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert parse_generate(body).prompt is None
        return
    with pytest.raises(CorralError) as refused:
        parse_generate(body)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "robot", "content": "x"}, "messages[0].role must be one of"),
        ({"role": "user", "content": 5}, "messages[0].content must be a string, not 5"),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, "lists of parts belong to /v1"),
        ({"role": "user", "content": "x", "images": ["aGk="]}, "messages[0].images"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
            "arguments must be an object",
        ),
        ("text", "messages[0] must be an object"),
    ],
)
def test_chat_names_what_is_wrong(message: Any, words: str) -> None:
    with pytest.raises(CorralError) as refused:
        parse_chat({"model": "m", "messages": [message]})
    assert words in refused.value.message


def test_forms_of_a_prompt() -> None:
    assert parse_generate({"model": " m "}).prompt is None
    assert parse_generate({"model": "m", "prompt": "x", "raw": True}).prompt == TextPrompt("x")
    wrapped = parse_generate({"model": "m", "prompt": "x", "think": False, "format": ""}).prompt
    assert wrapped == parse_chat({"model": "m", "messages": [{"role": "USER", "content": "x"}]}).prompt
    assert isinstance(wrapped, ChatPrompt)


def test_unknown_option_is_a_warning_with_the_nearest_name() -> None:
    call = parse_generate({"model": "m", "options": {"temp": 0, "top_k": None}})
    assert call.options == {}
    assert call.warnings == ('unknown option "temp" was ignored; did you mean "temperature"?',)


DONE = Done(FinishReason.STOP, Usage(5, 2), Timings(10, 20, 0, 40), warnings=("w",))


def test_generate_lines_and_whole_answer() -> None:
    encoder = GenerateEncoder(Call("M", "generate", None), lambda: 1_500_000_000)
    head = {"model": "M", "created_at": "1970-01-01T00:00:01.500000000Z"}
    assert msgspec.json.decode(encoder.chunk(TextDelta("hi"))) == head | {"response": "hi", "done": False}
    tail = {
        "done": True,
        "done_reason": "stop",
        "total_duration": 40,
        "prompt_eval_count": 5,
        "prompt_eval_duration": 10,
        "eval_count": 2,
        "eval_duration": 20,
        "warnings": ["w"],
    }
    assert msgspec.json.decode(encoder.chunk(DONE)) == head | {"response": ""} | tail
    assert (
        msgspec.json.decode(encoder.whole([TextDelta("a"), TextDelta("b"), DONE])) == head | {"response": "ab"} | tail
    )


def test_chat_has_a_message_in_every_line() -> None:
    encoder = ChatEncoder(Call("M", "chat", None), lambda: 0)
    for event in (TextDelta("hi"), DONE):
        line = encoder.chunk(event)
        assert line.endswith(b"\n")
        assert msgspec.json.decode(line)["message"]["role"] == "assistant"
    assert encoder.error(InvalidRequest("no")) == b'{"error":"no"}\n'
