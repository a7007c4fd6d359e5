"""Anthropic's bodies to calls, in words that name the field, and events to messages and their streams."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import Failure, InvalidRequest
from corral.core.events import TextDelta
from corral.core.options import OPTIONS, Kind
from corral.daemon.dialects.anthropic import ENDPOINTS
from corral.daemon.dialects.anthropic_encoder import encode_error
from corral.daemon.dialects.endpoint import Call
from dialect_cases import STAMP

MESSAGES, COUNT = ENDPOINTS
HI = {"role": "user", "content": "hi"}


def read(**body: Any) -> Call:
    call = MESSAGES.read({"model": "m", "max_tokens": 10, "messages": [HI], **body})
    assert isinstance(call, Call)
    return call


def user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (("model", "max_tokens", "messages"), "model is required"),
        (("max_tokens", "messages"), "max_tokens is required"),
        (("messages",), "messages is required"),
    ],
)
def test_required_fields_are_asked_for_in_order(missing: tuple[str, ...], message: str) -> None:
    body = {"model": "m", "max_tokens": 10, "messages": [HI]}
    with pytest.raises(InvalidRequest, match=message):
        MESSAGES.read({name: value for name, value in body.items() if name not in missing})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be positive"),
        ({"max_tokens": -1}, "max_tokens must be positive"),
        ({"max_tokens": "10"}, "max_tokens must be a whole number, not '10'"),
        ({"messages": []}, "messages is required"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role 'robot' must be one of user"),
        ({"messages": [{"role": "user"}]}, "messages[0].content is required"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content must be a string or a list, not 5"),
        (user({"type": "video"}), "messages[0].content[0].type must be one of text, image"),
        (user({"type": "text"}), "messages[0].content[0].text is required"),
        (user({"type": "image"}), "messages[0].content[0].source must be an object"),
        (
            user({"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}),
            "messages[0].content[0].source must be of type base64 with data; nothing is downloaded",
        ),
        (
            user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}}),
            "messages[0].content[0].source.data is not base64",
        ),
        (
            user({"type": "document", "source": {"type": "base64", "data": "eA=="}}),
            "this version reads documents of type text only",
        ),
        (user({"type": "tool_use", "name": "f", "input": {}}), "a tool_use needs an id"),
        (user({"type": "tool_use", "id": "1", "input": {}}), "a tool_use needs a name"),
        (user({"type": "tool_use", "id": "1", "name": "f", "input": "x"}), "content[0].input must be an object"),
        (user({"type": "tool_result", "content": "x"}), "a tool_result needs a tool_use_id"),
        ({"system": [{"type": "thinking", "thinking": "x"}]}, "system must be a string or a list of blocks"),
        ({"thinking": {"type": "hard"}}, "thinking.type must be one of enabled"),
        ({"output_config": {"effort": "hard"}}, "output_config.effort must be one of"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type must be"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name is required"),
        ({"tools": [{"name": "f", "input_schema": "x"}]}, "tools[0].input_schema must be"),
        ({"tools": [{"name": "f"}, {"name": "f"}]}, "'f' is there twice"),
        ({"tool_choice": {"type": "any"}}, "no tools are offered"),
        ({"tool_choice": {"type": "must"}}, "tool_choice.type must be auto"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name is required"),
        ({"tools": [{"name": "f"}], "tool_choice": {"type": "tool", "name": "g"}}, "'g', which is not among the tools"),
        ({"temperature": "hot"}, "temperature must be a whole number or a number"),
    ],
)
def test_error_names_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(**fields)
    assert message in refused.value.message


def test_native_options_are_extra_fields() -> None:
    values = {Kind.BOOL: True, Kind.STRINGS: ["x"], Kind.FLOATS: [0.5, 2.0]}
    given = {name: 2 if row.high == 2 else values.get(row.kind, 64) for name, row in OPTIONS.items()}
    del given["num_predict"]
    assert read(**given).options == {**given, "num_predict": 10}


def test_empty_stop_sequences_leave_the_models_own() -> None:
    assert "stop" not in read(stop_sequences=[]).options


@pytest.mark.parametrize(
    ("last", "is_prefill"),
    [
        ({"role": "assistant", "content": "So"}, True),
        ({"role": "assistant", "content": " "}, False),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}, False),
        ({"role": "user", "content": "So"}, False),
    ],
)
def test_answer_goes_on_with_text_of_the_assistant_only(last: dict[str, Any], is_prefill: bool) -> None:
    (prompt,) = read(messages=[HI, last]).prompts
    assert prompt.continue_last is is_prefill  # type: ignore[union-attr]


def test_misspelt_field_is_named() -> None:
    assert read(stop_sequence=["x"]).warnings == (
        'unknown field "stop_sequence" was ignored; did you mean "stop_sequences"?',
    )


def test_ping_comes_after_the_beginning() -> None:
    encoder = MESSAGES.encoder(read(), STAMP)
    first, second = encoder.ping(), encoder.ping()
    assert first.startswith(b"event: message_start\n")
    assert first.endswith(second)
    assert second == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert b"message_start" not in encoder.chunk(TextDelta("x"))


def test_guess_at_the_prompt_is_a_quarter_of_its_bytes() -> None:
    data = MESSAGES.encoder(read(system="s" * 20, messages=[{"role": "user", "content": "u" * 20}]), STAMP).ping()
    start = msgspec.json.decode(data.split(b"data: ")[1].split(b"\n\n")[0])
    assert start["message"]["usage"]["input_tokens"] == 10


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_request", "invalid_request_error"),
        ("forbidden", "permission_error"),
        ("model_not_found", "not_found_error"),
        ("queue_full", "overloaded_error"),
        ("internal", "api_error"),
    ],
)
def test_error_has_a_type_and_an_id(code: str, kind: str) -> None:
    error = msgspec.json.decode(encode_error(Failure(code, "why")))
    assert error["type"] == "error"
    assert error["error"] == {"type": kind, "message": "why"}
    assert error["request_id"].startswith("req_")


def test_stream_that_fails_ends_with_an_error_event() -> None:
    data = MESSAGES.encoder(read(), STAMP).error(Failure("runner_died", "why"))
    assert data.startswith(b"event: error\ndata: ")
    assert msgspec.json.decode(data.split(b"data: ")[1])["request_id"] == f"req_{STAMP.id}"
