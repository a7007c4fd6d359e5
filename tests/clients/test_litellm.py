"""litellm against the daemon, by its Ollama and its OpenAI way: a chat, a stream, a tool call, an embedding."""

from __future__ import annotations

from typing import Any

import litellm
import pytest
from callers import CALL, WEATHER

litellm.telemetry = False
WAYS = ("ollama_chat", "openai")


def where(way: str, url: str, model: str = "fake") -> dict[str, Any]:
    base = f"{url}/v1" if way == "openai" else url
    return {"model": f"{way}/{model}", "api_base": base, "api_key": "none"}


def ask(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("way", WAYS)
def test_chat_and_stream_give_the_same_text(url: str, way: str) -> None:
    whole = litellm.completion(messages=ask("say hello there"), max_tokens=50, **where(way, url))
    assert whole.choices[0].message.content == "hello there"
    assert whole.choices[0].finish_reason == "stop"
    stream = litellm.completion(messages=ask("say hello there"), stream=True, **where(way, url))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "hello there"


@pytest.mark.parametrize("way", WAYS)
def test_tool_call(url: str, way: str) -> None:
    answer = litellm.completion(messages=ask(f"say {CALL}"), tools=[WEATHER], **where(way, url, "caller"))
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert answer.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("way", ["ollama", "openai"])
def test_embedding(url: str, way: str) -> None:
    answer = litellm.embedding(input=["one", "two"], **where(way, url))
    first, second = (row["embedding"] for row in answer.data)
    assert first != second
