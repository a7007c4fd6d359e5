"""The official `text-generation` client against a daemon."""

from __future__ import annotations

import pytest
from daemons import RunningDaemon
from text_generation import AsyncClient
from text_generation.errors import NotFoundError, ValidationError
from text_generation.types import FinishReason, Grammar, GrammarType


@pytest.fixture
def client(daemon: RunningDaemon) -> AsyncClient:
    return AsyncClient(daemon.url)


async def test_client_generates(client: AsyncClient) -> None:
    answer = await client.generate("say hello", max_new_tokens=20)
    assert answer.generated_text == "hello"
    assert answer.details.finish_reason is FinishReason.EndOfSequenceToken
    assert answer.details.generated_tokens == len("hello") + 1
    assert [token.text for token in answer.details.tokens] == list("hello")
    assert [token.id for token in answer.details.tokens] == list(b"hello")
    assert answer.details.tokens[0].logprob == -0.5


async def test_client_streams(client: AsyncClient) -> None:
    steps = [step async for step in client.generate_stream("say hello", max_new_tokens=20)]
    assert "".join(step.token.text for step in steps if not step.token.special) == "hello"
    assert [step.generated_text for step in steps] == [None] * (len(steps) - 1) + ["hello"]
    assert steps[-1].details is not None
    assert steps[-1].details.finish_reason is FinishReason.EndOfSequenceToken


async def test_client_gets_limits_stops_and_the_full_text(client: AsyncClient) -> None:
    answer = await client.generate("say hello", max_new_tokens=2, return_full_text=True)
    assert answer.generated_text == "say hellohe"
    assert answer.details.finish_reason is FinishReason.Length
    answer = await client.generate("say hello", stop_sequences=["l"], do_sample=True, seed=3)
    assert answer.generated_text == "he"
    assert answer.details.finish_reason is FinishReason.StopSequence
    assert answer.details.seed == 3


async def test_client_keeps_to_a_grammar(client: AsyncClient) -> None:
    grammar = Grammar(type=GrammarType.Regex, value="yes|no")
    answer = await client.generate("say nothing", grammar=grammar)
    assert answer.generated_text in ("yes", "no")


async def test_client_asks_for_the_best_and_the_likeliest(client: AsyncClient) -> None:
    answer = await client.generate("say x", best_of=2, do_sample=True, top_n_tokens=1)
    assert answer.generated_text == "x"
    assert answer.details.top_tokens is not None
    assert [[token.text for token in tokens] for tokens in answer.details.top_tokens] == [["x"]]


async def test_client_gets_errors_as_types(daemon: RunningDaemon) -> None:
    with pytest.raises(ValidationError, match=r"parameters.max_new_tokens must be at least 1"):
        await AsyncClient(daemon.url).generate("say x", max_new_tokens=0)
    await daemon.call("DELETE", "/api/delete", {"model": "fake"})
    with pytest.raises((NotFoundError, ValidationError)):
        await AsyncClient(daemon.url).generate("say x")
