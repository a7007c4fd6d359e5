"""The official `anthropic` client against a daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from callers import CALL, TEMPLATE
from daemons import RunningDaemon, run_fake_daemon

TOOL: Any = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
async def client(daemon: RunningDaemon) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=daemon.url, api_key="unused", max_retries=0) as client:
        yield client


def saying(text: str) -> Any:
    return {"model": "fake", "max_tokens": 200, "messages": [{"role": "user", "content": f"say {text}"}]}


async def test_client_creates(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(**saying("hello"), system="Be kind.")
    assert message.id.startswith("msg_")
    assert [block.to_dict() for block in message.content] == [{"type": "text", "text": "hello"}]
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert message.usage.input_tokens == len("Be kind.\n\nsay hello")
    assert message.usage.output_tokens == len("hello") + 1


async def test_client_streams(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(**saying("hello")) as stream:
        assert "".join([text async for text in stream.text_stream]) == "hello"
        final = await stream.get_final_message()
    assert final.content[0].to_dict() == {"type": "text", "text": "hello"}
    assert final.stop_reason == "end_turn"
    assert final.usage.input_tokens == len("say hello")


async def test_stop_sequence_is_reported(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(**saying("hello"), stop_sequences=["x", "l"])
    assert message.content[0].to_dict()["text"] == "he"
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "l")
    async with client.messages.stream(**saying("hello"), stop_sequences=["l"]) as stream:
        final = await stream.get_final_message()
    assert (final.stop_reason, final.stop_sequence) == ("stop_sequence", "l")


async def test_limit_is_reported(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(**{**saying("hello"), "max_tokens": 2})
    assert message.content[0].to_dict()["text"] == "he"
    assert message.stop_reason == "max_tokens"


async def test_prefill_goes_on(client: anthropic.AsyncAnthropic) -> None:
    turns: Any = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "say more"}]
    message = await client.messages.create(model="fake", max_tokens=9, messages=turns)
    assert message.content[0].to_dict()["text"] == "more"


async def test_thinking_is_dropped_for_a_model_that_cannot(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(**saying("x"), thinking={"type": "enabled", "budget_tokens": 1024})
    assert message.content[0].to_dict() == {"type": "text", "text": "x"}


async def test_client_counts_tokens(client: anthropic.AsyncAnthropic) -> None:
    turns: Any = [{"role": "user", "content": "say x"}]
    counted = await client.messages.count_tokens(model="fake", messages=turns, system="Be kind.")
    assert counted.input_tokens == len("Be kind.\n\nsay x")
    created = await client.messages.create(model="fake", max_tokens=9, messages=turns, system="Be kind.")
    assert created.usage.input_tokens == counted.input_tokens


async def test_client_gets_errors_as_types(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="model 'nosuch' not found"):
        await client.messages.create(**{**saying("x"), "model": "nosuch"})
    with pytest.raises(anthropic.BadRequestError, match="max_tokens must be positive") as refused:
        await client.messages.create(**{**saying("x"), "max_tokens": -1})
    assert refused.value.type == "invalid_request_error"


async def test_client_calls_tools(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path) as daemon:
        await daemon.create("caller", template=TEMPLATE)
        asked = {"role": "user", "content": f"say <think>hm</think>I look{CALL}"}
        body: Any = {"model": "caller", "max_tokens": 400, "tools": [TOOL], "messages": [asked]}
        async with anthropic.AsyncAnthropic(base_url=daemon.url, api_key="unused", max_retries=0) as client:
            whole = await client.messages.create(**body)
            async with client.messages.stream(**body) as stream:
                streamed = await stream.get_final_message()
            result = {"type": "tool_result", "tool_use_id": whole.content[-1].to_dict()["id"], "content": "say sunny"}
            turns = [asked, {"role": "assistant", "content": whole.content}, {"role": "user", "content": [result]}]
            answer = await client.messages.create(**{**body, "messages": turns})
    for message in (whole, streamed):
        thinking, text, call = (block.to_dict() for block in message.content)
        assert thinking["thinking"] == "hm"
        assert text["text"] == "I look"
        assert (call["type"], call["name"], call["input"]) == ("tool_use", "get_weather", {"city": "Paris"})
        assert message.stop_reason == "tool_use"
    assert answer.content[0].to_dict()["text"] == "sunny"


async def test_stream_of_a_runner_that_dies_ends_with_an_error(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.APIStatusError) as broken:
        await client.messages.create(**{**saying("x"), "messages": [{"role": "user", "content": "die"}]})
    assert broken.value.status_code == 500
