"""llama-index's Ollama classes against the daemon: a chat, a stream, a tool call, an embedding."""

from __future__ import annotations

from callers import CALL
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.llms.ollama import Ollama


def model(url: str, name: str = "fake") -> Ollama:
    return Ollama(model=name, base_url=url, context_window=4096, request_timeout=30)


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def test_chat_and_stream_give_the_same_text(url: str) -> None:
    question = [ChatMessage(role="user", content="say hello there")]
    assert model(url).chat(question).message.content == "hello there"
    assert "".join(chunk.delta or "" for chunk in model(url).stream_chat(question)) == "hello there"
    assert model(url).complete("say hi").text == "hi"


def test_tool_call(url: str) -> None:
    llm = model(url, "caller")
    response = llm.chat_with_tools([FunctionTool.from_defaults(get_weather)], user_msg=f"say {CALL}")
    (call,) = llm.get_tool_calls_from_response(response)
    assert (call.tool_name, call.tool_kwargs) == ("get_weather", {"city": "Paris"})


def test_embedding(url: str) -> None:
    embedding = OllamaEmbedding(model_name="fake", base_url=url)
    one, two = embedding.get_text_embedding_batch(["one", "two"])
    assert one != two
    assert embedding.get_query_embedding("two") == two
