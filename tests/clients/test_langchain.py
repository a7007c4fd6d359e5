"""langchain-ollama against the daemon: a chat, a stream, a tool call, thinking, a schema, an embedding."""

from __future__ import annotations

from callers import CALL, WEATHER
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_ollama import ChatOllama, OllamaEmbeddings
from pydantic import BaseModel


class Verdict(BaseModel):
    """What a schema asks for."""

    verdict: bool


def model(url: str, name: str = "fake", **options: object) -> ChatOllama:
    return ChatOllama(model=name, base_url=url, num_predict=200, **options)  # type: ignore[arg-type]


def test_chat_and_stream_give_the_same_text(url: str) -> None:
    chat = model(url)
    whole = chat.invoke("say hello there")
    assert whole.content == "hello there"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == len("hello there") + 1
    assert "".join(str(chunk.content) for chunk in chat.stream("say hello there")) == "hello there"


def test_tool_call_and_its_answer(url: str) -> None:
    chat = model(url, "caller").bind_tools([WEATHER])
    called = chat.invoke(f"say {CALL}")
    assert isinstance(called, AIMessage)
    assert called.content == ""
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    answer = chat.invoke([HumanMessage("weather?"), called, ToolMessage("say sunny", tool_call_id=call["id"] or "")])
    assert answer.content == "sunny"


def test_thinking_is_apart(url: str) -> None:
    answer = model(url, "caller", reasoning=True).invoke("say <think>let me see</think>yes")
    assert answer.content == "yes"
    assert answer.additional_kwargs["reasoning_content"] == "let me see"


def test_schema_is_kept(url: str) -> None:
    verdict = model(url).with_structured_output(Verdict, method="json_schema").invoke("say maybe")
    assert isinstance(verdict, Verdict)


def test_embeddings_are_in_order(url: str) -> None:
    embeddings = OllamaEmbeddings(model="fake", base_url=url)
    first, second = embeddings.embed_documents(["one", "two"])
    assert first != second
    assert embeddings.embed_query("two") == second
