"""/v1/responses with the official `openai` client against a daemon: answers, streams, conversations that go on."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from callers import CALL, TEMPLATE, WEATHER
from daemons import RunningDaemon
from pydantic import BaseModel

TOOLS: Any = [{"type": "function", **WEATHER["function"]}]  # type: ignore[dict-item]


class City(BaseModel):
    """What structured answers are parsed into."""

    name: str


def client_of(daemon: RunningDaemon) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{daemon.url}/v1", api_key="unused", max_retries=0)


async def test_client_gets_an_answer_with_usage(daemon: RunningDaemon) -> None:
    answer = await client_of(daemon).responses.create(model="fake", input="say hello", instructions="be short")
    assert answer.output_text == "hello"
    assert answer.status == "completed"
    assert answer.usage is not None
    assert answer.usage.input_tokens == len("be short\n\nsay hello")
    assert answer.usage.total_tokens == answer.usage.input_tokens + len("hello") + 1


async def test_cut_answer_is_incomplete(daemon: RunningDaemon) -> None:
    answer = await client_of(daemon).responses.create(model="fake", input="say hello", max_output_tokens=2)
    assert (answer.output_text, answer.status) == ("he", "incomplete")
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


async def test_stream_builds_the_final_response(daemon: RunningDaemon) -> None:
    async with client_of(daemon).responses.stream(model="fake", input="say hello") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds
    assert final.output_text == "hello"


async def test_conversation_goes_on_by_id_also_from_a_stream(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    async with client.responses.stream(model="fake", input="say one", instructions="S") as stream:
        first = await stream.get_final_response()
    second = await client.responses.create(model="fake", input="say two", previous_response_id=first.id)
    assert second.output_text == "two"
    # Instructions do not carry over.
    assert second.usage is not None
    assert second.usage.input_tokens == len("say one\n\none\n\nsay two")
    assert second.previous_response_id == first.id


async def test_tool_call_and_its_result_make_a_round(daemon: RunningDaemon) -> None:
    await daemon.create("caller", template=TEMPLATE)
    client = client_of(daemon)
    asked = await client.responses.create(model="caller", input=f"say {CALL}", tools=TOOLS)
    (call,) = [item for item in asked.output if item.type == "function_call"]
    assert (call.name, call.arguments.replace(" ", "")) == ("get_weather", '{"city":"Paris"}')
    result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "say sunny"}]
    answer = await client.responses.create(
        model="caller", input=result, tools=TOOLS, previous_response_id=asked.id, store=False
    )
    assert answer.output_text == "sunny"
    with pytest.raises(openai.BadRequestError, match="is not known"):
        await client.responses.create(model="caller", input="x", previous_response_id=answer.id)


async def test_structured_answer_is_parsed_into_its_type(daemon: RunningDaemon) -> None:
    parsed = await client_of(daemon).responses.parse(
        model="fake", input='say {"name": "Rome"}', text_format=City, max_output_tokens=100
    )
    assert parsed.output_parsed == City(name="Rome")


async def test_kept_answer_can_be_read_and_forgotten(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    answer = await client.responses.create(model="fake", input="say hello")
    found = await client.responses.retrieve(answer.id)
    assert found.model_dump() == answer.model_dump()
    await client.responses.delete(answer.id)
    for gone in (client.responses.retrieve(answer.id), client.responses.delete(answer.id)):
        with pytest.raises(openai.NotFoundError, match="is not known"):
            await gone


async def test_errors_have_openais_form(daemon: RunningDaemon) -> None:
    with pytest.raises(openai.NotFoundError, match="model 'nosuch' not found"):
        await client_of(daemon).responses.create(model="nosuch", input="x")
    with pytest.raises(openai.BadRequestError, match="does not support thinking"):
        await client_of(daemon).responses.create(model="fake", input="x", reasoning={"effort": "high"})
