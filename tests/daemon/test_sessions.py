"""Conversations that go on by the id of an answer."""

from __future__ import annotations

import pytest
from corral.core.errors import InvalidRequest
from corral.core.events import Done, FinishReason, TextDelta, ThinkingDelta, ToolCallDelta
from corral.core.types import ChatPrompt, Message, Text, Thinking, ToolCall, ToolResult, text_message
from corral.daemon.dialects.endpoint import Call
from corral.daemon.sessions import MAX_AGE_SECONDS, MAX_KEPT, Sessions

EVENTS = [
    ThinkingDelta("hm"),
    TextDelta("a"),
    TextDelta("b"),
    ToolCallDelta(0, "call_1", "f", '{"x": 1}'),
    Done(FinishReason.STOP),
]


def call(text: str, previous: str | None = None, store: bool = True) -> Call:
    prompt = ChatPrompt((text_message("user", text),))
    return Call(model="m", prompts=(prompt,), previous=previous, store=store)


def test_conversation_goes_on_with_question_and_answer() -> None:
    sessions = Sessions()
    sessions.keep("1", call("first"), EVENTS)
    resumed = sessions.resume(call("second", previous="1"))
    assert isinstance(resumed, Call)
    (prompt,) = resumed.prompts
    assert isinstance(prompt, ChatPrompt)
    assert [message.role for message in prompt.messages] == ["user", "assistant", "user"]
    assert prompt.messages[1].parts == (Thinking("hm"), Text("ab"), ToolCall("call_1", "f", {"x": 1}))
    sessions.keep("2", resumed, EVENTS)
    third = sessions.resume(call("third", previous="2"))
    assert isinstance(third, Call)
    assert isinstance(third.prompts[0], ChatPrompt)
    assert len(third.prompts[0].messages) == 5


def test_call_that_goes_on_with_nothing_is_left_alone() -> None:
    asked = call("x")
    assert Sessions().resume(asked) is asked


def test_what_is_not_kept_is_an_error() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    sessions.keep("unstored", call("x", store=False), EVENTS)
    sessions.keep("old", call("x"), EVENTS)
    sessions.resume(call("y", previous="old"))
    now[0] = MAX_AGE_SECONDS + 1
    for gone in ("unstored", "old", "never"):
        with pytest.raises(InvalidRequest, match=f"previous_response_id: '{gone}' is not known"):
            sessions.resume(call("y", previous=gone))


def test_number_kept_is_bounded() -> None:
    sessions = Sessions()
    for number in range(MAX_KEPT + 1):
        sessions.keep(str(number), call("x"), EVENTS)
    sessions.resume(call("y", previous="1"))
    with pytest.raises(InvalidRequest):
        sessions.resume(call("y", previous="0"))


def test_kept_answer_is_found_until_it_is_forgotten() -> None:
    sessions = Sessions()
    sessions.keep("1", call("x"), EVENTS, lambda choices: b"%d events" % len(choices[0]))
    assert sessions.find("1") == b"5 events"
    assert (sessions.forget("1"), sessions.forget("1")) == (True, False)
    assert sessions.find("1") is None


def test_results_get_the_names_of_the_calls_that_went_before() -> None:
    sessions = Sessions()
    sessions.keep("1", call("x"), EVENTS)
    results = tuple(Message("tool", (ToolResult(name, "", "sunny"),)) for name in ("call_1", "call_9"))
    resumed = sessions.resume(Call(model="m", prompts=(ChatPrompt(results),), previous="1"))
    assert isinstance(resumed, Call)
    (prompt,) = resumed.prompts
    assert isinstance(prompt, ChatPrompt)
    assert [message.parts for message in prompt.messages[-2:]] == [
        (ToolResult("call_1", "f", "sunny"),),
        (ToolResult("call_9", "", "sunny"),),
    ]
