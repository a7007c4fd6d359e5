"""The official `openai` client against a daemon, and the bytes of its streams."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import openai
import pytest
from callers import CALL, TEMPLATE, WEATHER
from daemons import RunningDaemon
from pydantic import BaseModel

# The client's streams parse the calls of strict functions only.
TOOLS: Any = [{"type": "function", "function": {**WEATHER["function"], "strict": True}}]  # type: ignore[dict-item]


class City(BaseModel):
    """What structured answers are parsed into."""

    name: str
    is_large: bool


def asked(text: str) -> Any:
    return [{"role": "user", "content": text}]


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
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "foo"}}}}, "foo"),
        ({"reasoning_effort": "high"}, "does not support thinking"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "does not support tools"),
        ({"strict": True, "tmperature": 0}, 'unknown field "tmperature"'),
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


async def test_tool_call_comes_whole_and_in_pieces(daemon: RunningDaemon) -> None:
    await daemon.create("caller", template=TEMPLATE)
    client = client_of(daemon)
    whole = await client.chat.completions.create(model="caller", messages=asked(f"say {CALL}"), tools=TOOLS)
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].message.content is None
    calls: Any = whole.choices[0].message.tool_calls
    (call,) = calls
    assert (call.type, call.id[:5]) == ("function", "call_")
    assert call.function.name == "get_weather"
    assert msgspec.json.decode(call.function.arguments) == {"city": "Paris"}
    stream = client.chat.completions.stream(model="caller", messages=asked(f"say {CALL}"), tools=TOOLS)
    async with stream as events:
        final = await events.get_final_completion()
    (streamed,) = final.choices[0].message.tool_calls or []
    assert streamed.type == "function"
    assert (streamed.function.name, streamed.function.arguments) == (call.function.name, call.function.arguments)
    assert final.choices[0].finish_reason == "tool_calls"


async def test_required_call_is_forced_on_a_model_that_would_talk(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    whole = await client.chat.completions.create(
        model="fake", messages=asked("say no"), tools=TOOLS, tool_choice="required", max_tokens=300
    )
    (call,) = whole.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather"


async def test_thinking_comes_under_both_names(daemon: RunningDaemon) -> None:
    await daemon.create("thinker", template=TEMPLATE)
    body = {"model": "thinker", "messages": asked("say <think>hm</think>yes")}
    _, whole = await daemon.post("/v1/chat/completions", body)
    assert whole["choices"][0]["message"] == {
        "role": "assistant",
        "content": "yes",
        "reasoning": "hm",
        "reasoning_content": "hm",
    }


async def test_structured_answer_is_parsed_into_its_type(daemon: RunningDaemon) -> None:
    parsed = await client_of(daemon).chat.completions.parse(
        model="fake",
        messages=asked('say {"name": "Rome", "is_large": true}'),
        response_format=City,
        max_tokens=200,
    )
    assert parsed.choices[0].message.parsed == City(name="Rome", is_large=True)


async def test_several_choices_are_whole_or_side_by_side(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    whole = await client.chat.completions.create(model="fake", messages=asked("say hey"), n=3)
    assert [(choice.index, choice.message.content) for choice in whole.choices] == [(0, "hey"), (1, "hey"), (2, "hey")]
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (len("say hey"), 3 * 4)
    _, chunks = await events(daemon, messages=asked("say hey"), n=2)
    texts = {0: "", 1: ""}
    for chunk in chunks:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == {0: "hey", 1: "hey"}
    assert sum(chunk["choices"][0]["finish_reason"] == "stop" for chunk in chunks) == 2


async def test_completions_of_many_prompts_have_indexes_in_order(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    whole = await client.completions.create(model="fake", prompt=["say a", "say b"], n=2)
    assert [(choice.index, choice.text) for choice in whole.choices] == [(0, "a"), (1, "a"), (2, "b"), (3, "b")]
    tokens = await client.completions.create(model="fake", prompt=list(b"say c"), best_of=2)
    assert [choice.text for choice in tokens.choices] == ["c"]
    with pytest.raises(openai.BadRequestError, match="token 99999 is not in this model's vocabulary"):
        await client.completions.create(model="fake", prompt=[99999])


async def test_echo_scores_the_prompt(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    whole = await client.completions.create(model="fake", prompt="say a", echo=True, logprobs=1, max_tokens=0)
    (choice,) = whole.choices
    assert choice.text == "say a"
    assert choice.logprobs is not None
    assert choice.logprobs.tokens == list("say a")
    assert choice.logprobs.text_offset == [0, 1, 2, 3, 4]
    assert [value is None for value in choice.logprobs.token_logprobs or []] == [True, False, False, False, False]
    stream = await client.completions.create(model="fake", prompt="say a", echo=True, stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream]) == "say aa"


async def test_regex_and_choice_bind_completions(daemon: RunningDaemon) -> None:
    for fields in ({"guided_regex": "(yes|no)"}, {"structured_outputs": {"choice": ["yes", "no"]}}):
        body = {"model": "fake", "prompt": "say yessir", **fields}
        _, whole = await daemon.post("/v1/completions", body)
        assert whole["choices"][0]["text"] == "yes"


async def test_empty_prompt_loads_the_model(daemon: RunningDaemon) -> None:
    _, whole = await daemon.post("/v1/completions", {"model": "fake", "prompt": ""})
    assert whole["choices"][0]["finish_reason"] == "load"
    assert len(daemon.services.scheduler.loaded) == 1


async def test_client_embeds_texts_and_tokens(daemon: RunningDaemon) -> None:
    client = client_of(daemon)
    # The client asks for base64 unless told otherwise, and turns it into numbers.
    packed = await client.embeddings.create(model="fake", input=["ab", ""])
    plain = await client.embeddings.create(model="fake", input=["ab", ""], encoding_format="float")
    assert [item.index for item in packed.data] == [0, 1]
    assert [item.embedding for item in packed.data] == [pytest.approx(item.embedding) for item in plain.data]
    tokens = await client.embeddings.create(model="fake", input=[list(b"ab")], dimensions=4)
    assert len(tokens.data[0].embedding) == 4
    assert plain.usage.prompt_tokens == plain.usage.total_tokens > 0
    with pytest.raises(openai.BadRequestError, match="invalid input"):
        await client.embeddings.create(model="fake", input=[])


async def test_audio_is_refused_in_words(daemon: RunningDaemon) -> None:
    with pytest.raises(openai.BadRequestError, match="no engine for audio"):
        await client_of(daemon).audio.transcriptions.create(model="fake", file=("a.wav", b"RIFF" * 50_000))


async def test_synchronous_client_chats_and_streams(daemon: RunningDaemon) -> None:
    def talk() -> tuple[str | None, str]:
        client = openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="unused", max_retries=0)
        whole = client.chat.completions.create(model="fake", messages=asked("say hello"))
        stream = client.chat.completions.create(model="fake", messages=asked("say hello"), stream=True)
        return whole.choices[0].message.content, "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    assert await asyncio.to_thread(talk) == ("hello", "hello")
