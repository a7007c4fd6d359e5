"""Ollama's bodies to calls, in words that name the field, and events to its objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import CorralError, InvalidRequest
from corral.core.events import Done, Embedded, FinishReason, TextDelta, Timings, ToolCallDelta, Usage
from corral.core.types import ChatPrompt, Image, TextPrompt, ToolPolicy
from corral.daemon.dialects.endpoint import AnyCall, Call, EmbedCall, Stamp
from corral.daemon.dialects.ollama import ENDPOINTS
from corral.daemon.dialects.ollama_encoder import ChatEncoder, EmbedEncoder, GenerateEncoder

STAMP = Stamp("0" * 24, lambda: 0)
READERS = {endpoint.path: endpoint.read for endpoint in ENDPOINTS}


def parse(path: str, body: dict[str, Any]) -> Call:
    call = READERS[path](body)
    assert isinstance(call, Call)
    return call


def parse_generate(body: dict[str, Any]) -> Call:
    return parse("/api/generate", body)


def parse_chat(body: dict[str, Any]) -> Call:
    return parse("/api/chat", body)


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
        ({"model": "m", "top_logprobs": 21}, "top_logprobs must be at most 20, not 21"),
        ({"model": "m", "context": [1]}, None),
        ({"model": "m", "prompt": "x", "context": ["a"]}, "context[0] must be a whole number, not 'a'"),
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
        assert parse_generate(body).prompts == ()
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
            "messages[0].tool_calls[0].function.arguments must be an object, not '{}'",
        ),
        ("text", "messages[0] must be an object"),
    ],
)
def test_chat_names_what_is_wrong(message: Any, words: str) -> None:
    with pytest.raises(CorralError) as refused:
        parse_chat({"model": "m", "messages": [message]})
    assert words in refused.value.message


def test_forms_of_a_prompt() -> None:
    assert parse_generate({"model": " m "}).prompts == ()
    assert parse_generate({"model": "m", "prompt": "x", "raw": True}).prompts == (TextPrompt("x"),)
    (wrapped,) = parse_generate({"model": "m", "prompt": "x", "format": ""}).prompts
    assert (wrapped,) == parse_chat({"model": "m", "messages": [{"role": "USER", "content": "x"}]}).prompts
    assert isinstance(wrapped, ChatPrompt)


def test_unknown_option_is_a_warning_with_the_nearest_name() -> None:
    call = parse_generate({"model": "m", "options": {"temp": 0, "top_k": None}})
    assert call.options == {}
    assert call.warnings == ('unknown option "temp" was ignored; did you mean "temperature"?',)


DONE = Done(FinishReason.STOP, Usage(5, 2), Timings(10, 20, 0, 40), warnings=("w",))


def test_generate_lines_and_whole_answer() -> None:
    encoder = GenerateEncoder(Call(model="M"), Stamp("0" * 24, lambda: 1_500_000_000))
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
        msgspec.json.decode(encoder.whole([[TextDelta("a"), TextDelta("b"), DONE]])) == head | {"response": "ab"} | tail
    )


def test_chat_has_a_message_in_every_line() -> None:
    encoder = ChatEncoder(Call(model="M"), STAMP)
    for event in (TextDelta("hi"), DONE):
        line = encoder.chunk(event)
        assert line.endswith(b"\n")
        assert msgspec.json.decode(line)["message"]["role"] == "assistant"
    assert encoder.error(InvalidRequest("no")) == b'{"error":"no"}\n'


PNG = "iVBORw0KGgo="


def test_images_become_parts_of_their_message() -> None:
    (prompt,) = parse_chat({"model": "m", "messages": [{"role": "user", "content": "x", "images": [PNG]}]}).prompts
    assert isinstance(prompt, ChatPrompt)
    assert [type(part).__name__ for part in prompt.messages[0].parts] == ["Text", "Image"]
    (prompt,) = parse_generate({"model": "m", "images": [PNG]}).prompts
    assert isinstance(prompt, ChatPrompt)
    assert isinstance(prompt.messages[0].parts[1], Image)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
MESSAGES = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("choice", "policy", "num_tools"),
    [
        (None, ToolPolicy(), 1),
        ("auto", ToolPolicy(), 1),
        ("none", ToolPolicy(), 0),
        ("required", ToolPolicy(is_required=True), 1),
        ({"type": "function", "function": {"name": "f"}}, ToolPolicy(True, ("f",), False), 1),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "name": "f"}]},
            },
            ToolPolicy(True, ("f",), False),
            1,
        ),
    ],
)
def test_tool_choice(choice: Any, policy: ToolPolicy, num_tools: int) -> None:
    call = parse_chat({"model": "m", "messages": MESSAGES, "tools": [TOOL], "tool_choice": choice})
    (prompt,) = call.prompts
    assert isinstance(prompt, ChatPrompt)
    assert (call.tool_policy, len(prompt.tools)) == (policy, num_tools)


@pytest.mark.parametrize(
    ("tools", "choice", "message"),
    [
        (
            [TOOL],
            {"type": "function", "function": {"name": "g"}},
            "tool_choice names 'g', which is not among the tools",
        ),
        ([TOOL], "perhaps", "tool_choice must be"),
        ([], "required", "no tools are offered"),
        ([TOOL, TOOL], None, "tools[1].function.name 'f' is there twice"),
        ([{"type": "function"}], None, "tools[0].function must be an object with a name"),
        ([{"type": "web_search"}], None, 'tools[0].type must be "function"'),
    ],
)
def test_tools_that_cannot_be_offered_are_named(tools: list[Any], choice: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_chat({"model": "m", "messages": MESSAGES, "tools": tools, "tool_choice": choice})
    assert message in refused.value.message


def test_tool_call_is_sent_when_it_is_whole() -> None:
    encoder = ChatEncoder(Call(model="M"), STAMP)
    pieces = [
        ToolCallDelta(0, "call_1", "f", '{"a"'),
        ToolCallDelta(0, "", "", ": 1}"),
        ToolCallDelta(1, "call_2", "g", "{}"),
    ]
    assert [encoder.chunk(piece) for piece in pieces[:2]] == [b"", b""]
    first = msgspec.json.decode(encoder.chunk(pieces[2]))["message"]
    assert first["tool_calls"] == [{"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}]
    lines = encoder.chunk(DONE).splitlines()
    assert msgspec.json.decode(lines[0])["message"]["tool_calls"][0]["id"] == "call_2"
    assert msgspec.json.decode(lines[1])["done_reason"] == "stop"
    whole = msgspec.json.decode(ChatEncoder(Call(model="M"), STAMP).whole([[*pieces, DONE]]))
    assert [call["function"]["name"] for call in whole["message"]["tool_calls"]] == ["f", "g"]


def read_embed(body: dict[str, Any]) -> EmbedCall:
    call: AnyCall = READERS["/api/embed"](body)
    assert isinstance(call, EmbedCall)
    return call


@pytest.mark.parametrize(
    ("given", "inputs"), [("a", ("a",)), (["a", ""], ("a", "")), (None, ()), ("", ()), ([], ()), ([""], ())]
)
def test_inputs_of_embed(given: Any, inputs: tuple[str, ...]) -> None:
    assert read_embed({"model": "m", "input": given}).inputs == inputs


@pytest.mark.parametrize("given", [1, True, {}, ["a", 1], [["a"]]])
def test_inputs_of_another_type_are_refused(given: Any) -> None:
    with pytest.raises(InvalidRequest, match="invalid input type"):
        read_embed({"model": "m", "input": given})


def test_vectors_are_numbers_in_order() -> None:
    encoder = EmbedEncoder(EmbedCall(model="M"), STAMP)
    two = Embedded((b"\x00\x00\x80\x3f", b"\x00\x00\x00\x3f"))
    assert msgspec.json.decode(encoder.whole([[two, DONE]]))["embeddings"] == [[1.0], [0.5]]
