"""The official `openai` client against a daemon, and the bytes of its streams."""

from __future__ import annotations

from typing import Any

import msgspec
import openai
import pytest
from daemons import RunningDaemon


def client_of(daemon: RunningDaemon) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{daemon.url}/v1", api_key="unused", max_retries=0)


async def events(daemon: RunningDaemon, **fields: Any) -> tuple[str, list[Any]]:
    body = {"model": "fake", "stream": True, "messages": [{"role": "user", "content": "say hello"}], **fields}
    async with daemon.http.post(f"{daemon.url}/v1/chat/completions", json=body) as response:
        data = (await response.read()).decode()
        assert data.endswith("data: [DONE]\n\n")
        lines = [line.removeprefix("data: ") for line in data.split("\n\n") if line][:-1]
        return response.headers["Content-Type"], [msgspec.json.decode(line) for line in lines]


async def test_client_chats_and_streams(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    whole = await client.chat.completions.create(model="fake", messages=[{"role": "user", "content": "say hello"}])
    assert whole.choices[0].message.content == "hello"
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert whole.usage.total_tokens == len("say hello") + len("hello") + 1
    stream = await client.chat.completions.create(
        model="fake", messages=[{"role": "user", "content": "say hi"}], stream=True
    )
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "hi"


async def test_client_completes_and_lists(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    assert (await client.completions.create(model="fake", prompt="say x")).choices[0].text == "x"
    assert [model.id async for model in client.models.list()] == ["fake:latest"]
    assert (await client.models.retrieve("fake")).owned_by == "library"
    with pytest.raises(openai.NotFoundError, match="model 'nosuch' not found"):
        await client.models.retrieve("nosuch")
    with pytest.raises(openai.NotFoundError, match="model 'nosuch' not found"):
        await client.chat.completions.create(model="nosuch", messages=[{"role": "user", "content": "x"}])


async def test_stream_has_one_id_one_role_and_one_finish(daemon: RunningDaemon) -> None:
    kind, chunks = await events(daemon, stream_options={"include_usage": True})
    assert kind == "text/event-stream"
    assert len({chunk["id"] for chunk in chunks}) == len({chunk["created"] for chunk in chunks}) == 1
    *choices, usage = chunks
    assert choices[0]["choices"][0]["delta"]["role"] == "assistant"
    assert sum("role" in chunk["choices"][0]["delta"] for chunk in choices) == 1
    assert [chunk["choices"][0]["finish_reason"] for chunk in choices] == [None] * (len(choices) - 1) + ["stop"]
    assert choices[-1]["choices"][0]["delta"] == {}
    assert all(chunk["usage"] is None for chunk in choices)
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 6


async def test_stream_without_usage_has_no_usage(daemon: RunningDaemon) -> None:
    _, chunks = await events(daemon, max_completion_tokens=2)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert not any("usage" in chunk for chunk in chunks)


async def test_logprobs_are_those_of_the_native_api(daemon: RunningDaemon) -> None:
    messages = [{"role": "user", "content": "say hey"}]
    body = {"model": "fake", "messages": messages, "logprobs": True, "top_logprobs": 1}
    _, whole = await daemon.post("/v1/chat/completions", body)
    content = whole["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in content] == ["h", "e", "y"]
    _, native = await daemon.post("/api/chat", {**body, "stream": False})
    assert native["logprobs"] == content
    _, chunks = await events(daemon, messages=messages, logprobs=True)
    assert sum(len((chunk["choices"][0]["logprobs"] or {"content": []})["content"]) for chunk in chunks) == 3


async def test_models_own_parameters_hold_where_the_request_says_nothing(daemon: RunningDaemon) -> None:
    fields = {"from": "fake", "parameters": {"num_predict": 2, "stop": ["l"]}, "stream": False}
    await daemon.post("/api/create", {"model": "short", **fields})
    body = {"model": "short", "messages": [{"role": "user", "content": "say hello"}]}
    _, whole = await daemon.post("/v1/chat/completions", body)
    assert whole["choices"][0]["message"]["content"] == "he"
    _, whole = await daemon.post("/v1/chat/completions", body | {"max_tokens": 1, "stop": "e"})
    assert whole["choices"][0]["message"]["content"] == "h"


async def test_parts_are_one_message_and_developer_is_system(daemon: RunningDaemon) -> None:
    parts = [{"type": "text", "text": "say "}, {"type": "text", "text": "joined"}]
    for role in ("developer", "system"):
        messages = [{"role": role, "content": "S"}, {"role": "user", "content": parts}]
        _, whole = await daemon.post("/v1/chat/completions", {"model": "fake", "messages": messages})
        assert whole["choices"][0]["message"]["content"] == "joined"
        assert whole["usage"]["prompt_tokens"] == len("S\n\nsay joined")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": []}, "[] is too short - 'messages'"),
        ({"model": ""}, "model is required"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role 'robot'"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "text only, not image_url"),
        ({"n": 2}, "one choice a request"),
        ({"max_tokens": -1}, "max_tokens must be a whole number"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema must be an object"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "foo"}}}}, "Invalid type: foo"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"reasoning_effort": "huge"}, "reasoning_effort must be one of"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "does not support tools"),
        ({"temperature": "hot"}, 'option "temperature"'),
    ],
)
async def test_errors_have_openais_form(daemon: RunningDaemon, fields: dict[str, Any], message: str) -> None:
    body = {"model": "fake", "messages": [{"role": "user", "content": "say x"}], **fields}
    status, answer = await daemon.post("/v1/chat/completions", body)
    assert status == 400
    assert message in answer["error"]["message"]
    assert answer["error"]["type"] == "invalid_request_error"
    assert (answer["error"]["param"], answer["error"]["code"]) == (None, None)


async def test_null_content_is_an_empty_turn(daemon: RunningDaemon) -> None:
    for turn in ({"role": "assistant", "content": None}, {"role": "assistant"}):
        messages = [{"role": "user", "content": "a"}, turn, {"role": "user", "content": "say x"}]
        status, whole = await daemon.post("/v1/chat/completions", {"model": "fake", "messages": messages})
        assert status == 200
        assert whole["choices"][0]["message"]["content"] == "x"


async def test_broken_stream_ends_with_an_error_event(daemon: RunningDaemon) -> None:
    body = {"model": "fake", "messages": [{"role": "user", "content": "forever"}], "stream": True, "max_tokens": 50_000}
    async with daemon.http.post(f"{daemon.url}/v1/chat/completions", json=body) as response:
        await response.content.readany()
        handle = daemon.services.scheduler.loaded[0].handle
        assert handle is not None
        await handle.close(force=True)
        data = (await response.read()).decode()
    last = msgspec.json.decode(data.strip().rsplit("data: ", 1)[1])
    assert last["error"]["type"] == "api_error"


@pytest.mark.parametrize("stop", ["o", ["o", "zz"]])
async def test_stop_is_a_string_or_a_list(daemon: RunningDaemon, stop: Any) -> None:
    body = {"model": "fake", "messages": [{"role": "user", "content": "say hello"}], "stop": stop}
    _, whole = await daemon.post("/v1/chat/completions", body)
    assert whole["choices"][0]["message"]["content"] == "hell"
    assert whole["choices"][0]["finish_reason"] == "stop"
