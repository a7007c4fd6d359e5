"""Bodies of /v1/responses to calls, and events to response objects and numbered events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import Failure, InvalidRequest
from corral.core.events import Done, Event, FinishReason, TextDelta, ThinkingDelta, ToolCallDelta
from corral.daemon.dialects.endpoint import Call
from corral.daemon.dialects.responses import ENDPOINTS
from corral.daemon.dialects.responses_encoder import ResponseEncoder
from corral.daemon.dialects.sse import PING
from dialect_cases import STAMP

DONE = Done(FinishReason.STOP)


def read(**body: Any) -> Call:
    call = ENDPOINTS[0].read({"model": "m", "input": "hi", **body})
    assert isinstance(call, Call)
    return call


def events_of(data: bytes) -> list[dict[str, Any]]:
    lines = [line for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": None}, "model is required"),
        ({"input": None}, "input must be a text or a list of items"),
        ({"input": ""}, "input must be a text or a list of items"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input must be a text or a list of items"),
        ({"input": 5}, "input must be a string or a list, not 5"),
        ({"input": ["x"]}, "input[0] must be an object"),
        ({"input": [{}]}, "input[0].type must be one of message, function_call, function_call_output, reasoning"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type must be one of"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role 'robot' must be one of"),
        ({"input": [{"role": "user", "content": []}]}, "input[0].content must be a string or a list of parts"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0]: this version takes"),
        ({"input": [{"role": "user", "content": [{"type": "tool"}]}]}, "input[0].content[0] must be a part of type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "must come as a data: URL",
        ),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0]: a function_call needs name and call_id"),
        (
            {"input": [{"type": "function_call", "name": "f", "call_id": "c", "arguments": "x"}]},
            "input[0].arguments must be the text of a JSON object",
        ),
        (
            {"input": [{"type": "function_call_output", "output": "x"}]},
            "input[0]: a function_call_output needs call_id",
        ),
        ({"max_output_tokens": 0}, "max_output_tokens must be at least 1"),
        ({"reasoning": {"effort": "hard"}}, "reasoning.effort must be one of"),
        ({"tool_choice": "required", "tools": [{"type": "web_search"}]}, "no tools are offered"),
        ({"tools": [{"type": "function"}]}, "tools[0].function must be an object with a name"),
        ({"truncation": "sometimes"}, 'truncation must be "auto" or "disabled"'),
        ({"background": True}, "background: this version"),
        ({"conversation": "conv_1"}, "conversation: this version keeps none"),
        ({"prompt": {"id": "p"}}, "prompt: this version stores no prompts"),
    ],
)
def test_response_names_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(**fields)
    assert message in refused.value.message


def test_choice_of_a_tool_that_is_not_run_here_is_a_warning() -> None:
    call = read(tools=[{"type": "file_search"}], tool_choice={"type": "file_search"})
    assert [warning.split(" was")[0] for warning in call.warnings] == ["tools[0]", "tool_choice"]


def test_answers_are_kept_unless_the_client_says_no() -> None:
    assert read().store is True
    assert read(store=False).store is False
    assert read(previous_response_id="resp_abc").previous == "abc"


def test_numbers_run_from_0_and_every_item_is_added_and_done_once() -> None:
    encoder = ResponseEncoder(read(), STAMP)
    answer: list[Event] = [
        *(ThinkingDelta("a"), TextDelta("b"), ToolCallDelta(0, "c0", "f", "{}"), ToolCallDelta(1, "c1", "g", "{")),
        *(ToolCallDelta(1, "", "", "}"), TextDelta("c"), TextDelta("d"), DONE),
    ]
    found = events_of(b"".join(map(encoder.chunk, answer)) + encoder.end())
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    for kind in ("response.output_item.added", "response.output_item.done"):
        assert [event["output_index"] for event in found if event["type"] == kind] == [0, 1, 2, 3, 4]
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert found[-1]["response"]["output"] == done
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call", "function_call", "message"]


def test_text_without_characters_begins_no_item() -> None:
    encoder = ResponseEncoder(read(), STAMP)
    assert encoder.chunk(TextDelta("")) == b""
    assert encoder.chunk(ToolCallDelta(0, "c0", "f", "{}")) != b""
    assert encoder.chunk(TextDelta("")) == b""


def test_first_ping_announces_the_answer_and_others_are_comments() -> None:
    encoder = ResponseEncoder(read(), STAMP)
    assert [event["type"] for event in events_of(encoder.ping())] == ["response.created", "response.in_progress"]
    assert encoder.ping() == PING
    assert events_of(encoder.chunk(TextDelta("a")))[0]["type"] == "response.output_item.added"


def test_stream_that_breaks_ends_with_a_failed_response() -> None:
    encoder = ResponseEncoder(read(), STAMP)
    encoder.chunk(TextDelta("a"))
    (failed,) = events_of(encoder.error(Failure("runner_died", "the runner died")))
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_error", "message": "the runner died"}
