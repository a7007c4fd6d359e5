"""A daemon for tests, in this process and on a free port: real store, real runner processes, the fake engine inside."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from corral.core.settings import load_settings
from corral.daemon.main import start_daemon
from corral.daemon.services import Services
from corral.registry.digests import digest_bytes
from gguf_files import build_gguf


def free_port() -> int:
    """A TCP port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tiny_gguf(**metadata: Any) -> bytes:
    """A well-formed GGUF file with one small tensor. No engine could run it, but the fake one does."""
    values = {"general.architecture": "llama", "llama.context_length": 8192, "llama.embedding_length": 8, **metadata}
    return build_gguf(values, {"token_embd.weight": ((8, 4), 0, bytes(128))})


class RunningDaemon:
    """What a test needs of a daemon: addresses, a client, and its insides for looking at."""

    def __init__(self, services: Services, http: aiohttp.ClientSession, folder: Path) -> None:
        self.services = services
        self.http = http
        self.url = services.settings.host.url
        self.folder = folder

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Status and answer of a request; NDJSON comes as a list of objects, other text as text."""
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        async with self.http.request(method, self.url + path, data=data, **options) as response:
            return response.status, await _read(response)

    async def post(self, path: str, body: Any, **options: Any) -> tuple[int, Any]:
        """POST a JSON body."""
        return await self.call("POST", path, body, **options)

    async def upload(self, data: bytes) -> str:
        """Send a blob and return its digest."""
        digest = digest_bytes(data)
        status, _ = await self.call("POST", f"/api/blobs/{digest}", data)
        assert status in (200, 201)
        return digest

    async def create(self, name: str, data: bytes | None = None, **fields: Any) -> None:
        """Make a model from a GGUF file's bytes."""
        digest = await self.upload(data or tiny_gguf())
        status, answer = await self.post(
            "/api/create", {"model": name, "files": {"m.gguf": digest}, "stream": False, **fields}
        )
        assert (status, answer.get("status")) == (200, "success"), answer


async def _read(response: aiohttp.ClientResponse) -> Any:
    if response.content_type == "application/x-ndjson":
        return [msgspec.json.decode(line) for line in (await response.read()).splitlines()]
    if response.content_type == "application/json":
        return await response.json()
    return await response.text()


@asynccontextmanager
async def run_fake_daemon(folder: Path, **settings: Any) -> AsyncIterator[RunningDaemon]:
    """A daemon with the fake engine and a model `fake`. `settings` are given as flags."""
    flags = {
        "host": f"127.0.0.1:{free_port()}",
        "models": str(folder / "models"),
        "socket": str(folder / "corral.sock"),
        # A status can only be told before the first byte: without this a load on a busy machine would change it to 200.
        "heartbeat": 0,
        **settings,
    }
    loaded = load_settings(flags, environ={}, config_file=folder / "config.yaml")
    async with AsyncExitStack() as stack:
        services = await start_daemon(loaded, "fake", stack)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        daemon = RunningDaemon(services, http, folder)
        await daemon.create("fake")
        yield daemon
