"""Management endpoints by their bytes: lists, show and export, names, deletion, who gets in."""

from __future__ import annotations

import gzip
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from corral import __version__
from daemons import RunningDaemon, run_fake_daemon, tiny_gguf

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


async def test_root_and_version_answer_get_and_head(daemon: RunningDaemon) -> None:
    assert await daemon.call("GET", "/") == (200, "Ollama is running")
    assert (await daemon.call("HEAD", "/"))[0] == 200
    assert await daemon.call("GET", "/api/version") == (200, {"version": __version__})
    assert (await daemon.call("HEAD", "/api/tags"))[0] == 200


async def test_unknown_path_is_404_and_wrong_method_405(daemon: RunningDaemon) -> None:
    assert (await daemon.call("GET", "/api/nosuch"))[0] == 404
    assert (await daemon.call("GET", "/api/chat"))[0] == 405


async def test_tags_describe_the_model(daemon: RunningDaemon) -> None:
    _, answer = await daemon.call("GET", "/api/tags")
    row = answer["models"][0]
    assert row["name"] == row["model"] == "fake:latest"
    assert len(row["digest"]) == 64
    assert row["size"] > len(tiny_gguf())
    assert row["details"] == {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "32",
        "quantization_level": "unknown",
        "context_length": 8192,
        "embedding_length": 8,
    }
    assert row["modified_at"].endswith("Z")


async def test_show_gives_metadata_tensors_and_capabilities(daemon: RunningDaemon) -> None:
    status, answer = await daemon.post("/api/show", {"model": "fake"})
    assert status == 200
    assert answer["model_info"]["general.parameter_count"] == 32
    assert answer["model_info"]["llama.context_length"] == 8192
    assert answer["tensors"] == [{"name": "token_embd.weight", "type": "F32", "shape": [8, 4]}]
    assert answer["capabilities"] == ["completion"]
    assert "FROM fake:latest\n" in answer["modelfile"]
    assert str(daemon.folder) not in str(answer)


async def test_export_and_create_lose_nothing(daemon: RunningDaemon) -> None:
    messages = [
        {"role": "user", "content": '"quoted whole"'},
        {"role": "assistant", "content": 'He said "stop".\nFROM nowhere\n# not a comment\n'},
        {"role": "user", "content": "tab\there, colon: here"},
        {"role": "assistant", "content": 'ends with a quote"'},
    ]
    fields = {
        "from": "fake",
        "system": "  outer spaces kept  ",
        "messages": messages,
        "license": ["MIT", 'Apache\n"""2"""\nx'],
        "parameters": {"stop": ['"', "a\nb"], "temperature": 0.25, "num_ctx": 512, "use_mmap": True},
        "template": "{{ .Prompt }}\n",
        "stream": False,
    }
    assert (await daemon.post("/api/create", {"model": "a", **fields}))[0] == 200
    _, first = await daemon.post("/api/show", {"model": "a"})
    _, parsed = await daemon.call("POST", "/api/modelfile", first["modelfile"].encode())
    assert parsed["from"][0]["value"] == "fake:latest"
    await daemon.post("/api/create", {"model": "b", "from": "fake", "stream": False, **parsed["request"]})
    _, second = await daemon.post("/api/show", {"model": "b"})
    for field in ("system", "messages", "license", "parameters", "template"):
        assert second[field] == first[field], field
    assert second["messages"] == messages
    assert second["modelfile"].replace("# FROM b:", "# FROM a:") == first["modelfile"]


async def test_cleared_system_stays_cleared_in_the_export(daemon: RunningDaemon) -> None:
    fields = {"from": "fake", "system": "French only.", "parameters": {"stop": ["Z"]}, "stream": False}
    await daemon.post("/api/create", {"model": "parent", **fields})
    await daemon.post("/api/create", {"model": "child", "from": "parent", "system": "", "stream": False})
    _, shown = await daemon.post("/api/show", {"model": "child"})
    assert "system" not in shown
    assert shown["parameters"].count("stop") == 1
    assert "FROM parent:latest\nSYSTEM \nPARAMETER stop Z\n" in shown["modelfile"]
    body = {"model": "child", "prompt": "q", "stream": False, "_debug_render_only": True}
    _, rendered = await daemon.post("/api/generate", body)
    # An empty system message: the template must not put in a text of its own either.
    assert rendered["_debug_info"]["rendered_template"] == "\n\nq"


async def test_names_ignore_case_and_echo_the_request(daemon: RunningDaemon) -> None:
    await daemon.create("CaseTest:Q8_A")
    status, answer = await daemon.post("/api/generate", {"model": "casetest:q8_a", "prompt": "say x", "stream": False})
    assert (status, answer["model"]) == (200, "casetest:q8_a")
    assert (await daemon.post("/api/copy", {"source": "casetest:q8_a", "destination": "CASETEST:q8_a"}))[0] == 200
    _, tags = await daemon.call("GET", "/api/tags")
    assert sorted(row["name"] for row in tags["models"]) == ["CaseTest:Q8_A", "fake:latest"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/api/show", {}, 400, "model is required"),
        ("POST", "/api/show", {"model": "nosuch"}, 404, "model 'nosuch:latest' not found"),
        ("POST", "/api/copy", {"source": "nosuch", "destination": "x"}, 404, 'model "nosuch" not found'),
        ("POST", "/api/copy", {"source": "a//b", "destination": "x"}, 400, 'source "a//b" is invalid'),
        ("POST", "/api/copy", {"source": "fake", "destination": ""}, 400, 'destination "" is invalid'),
        ("DELETE", "/api/delete", {"model": "nosuch"}, 404, "model 'nosuch' not found"),
        ("POST", "/api/show", {"model": "", "name": "nosuch"}, 404, "model 'nosuch:latest' not found"),
        ("DELETE", "/api/delete", {"name": "a//b"}, 400, 'name "a//b" is invalid'),
        ("POST", "/api/chat", {"model": "../x", "messages": []}, 400, "invalid model name"),
        ("POST", "/api/chat", b"", 400, "missing request body"),
        ("POST", "/api/chat", b"{", 400, "invalid JSON: Expecting property name"),
        ("POST", "/api/chat", b"[1]", 400, "the body must be a JSON object"),
        ("POST", "/api/chat", b"[" * 100_000, 400, "invalid JSON"),
        ("POST", "/api/modelfile", b"FROM x\nPARAMETER <a>\n", 400, "line 2, column"),
    ],
)
async def test_error_says_what_is_wrong(
    daemon: RunningDaemon, method: str, path: str, body: object, status: int, message: str
) -> None:
    answered, answer = await daemon.call(method, path, body)
    assert answered == status
    assert message in answer["error"]
    assert "Traceback" not in answer["error"]


async def test_deleted_model_is_gone_but_keeps_running(daemon: RunningDaemon) -> None:
    await daemon.post("/api/generate", {"model": "fake", "prompt": "say x", "stream": False})
    assert (await daemon.call("DELETE", "/api/delete", {"model": "fake"}))[0] == 200
    assert (await daemon.call("GET", "/api/tags"))[1] == {"models": []}
    assert len((await daemon.call("GET", "/api/ps"))[1]["models"]) == 1
    assert not list((daemon.folder / "models" / "blobs").iterdir())


async def test_strangers_origin_is_refused_with_the_setting_to_change(daemon: RunningDaemon) -> None:
    async with daemon.http.get(f"{daemon.url}/api/tags", headers={"Origin": "http://evil.example"}) as response:
        assert response.status == 403
        assert response.headers["Vary"] == "Origin"
        assert "CORRAL_ORIGINS" in (await response.json())["error"]


async def test_local_origin_is_echoed_and_preflight_answered(daemon: RunningDaemon) -> None:
    headers = {"Origin": "http://localhost:3000"}
    async with daemon.http.get(f"{daemon.url}/api/tags", headers=headers) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
        assert response.headers["Vary"] == "Origin"
    async with daemon.http.options(f"{daemon.url}/api/chat", headers=headers) as response:
        assert response.status == 204
        assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
    async with daemon.http.post(
        f"{daemon.url}/api/generate", json={"model": "fake", "prompt": "say x"}, headers=headers
    ) as response:
        assert response.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"


async def test_rebound_host_is_refused(daemon: RunningDaemon) -> None:
    assert (await daemon.call("GET", "/api/tags", headers={"Host": "evil.example"}))[0] == 403
    assert (await daemon.call("GET", "/api/tags", headers={"Host": "localhost:1"}))[0] == 200


async def test_unix_socket_is_private_and_answers(daemon: RunningDaemon) -> None:
    path = daemon.services.settings.socket
    assert path.stat().st_mode & 0o777 == 0o600
    connector = aiohttp.UnixConnector(str(path))
    async with aiohttp.ClientSession(connector=connector) as http, http.get("http://corral/api/version") as response:
        assert response.status == 200


async def test_taken_port_names_who_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Exception, match=rf"port {port} is taken by .*pid \d+.*CORRAL_HOST"):
            async with run_fake_daemon(tmp_path, host=f"127.0.0.1:{port}"):
                pass


async def test_second_daemon_leaves_a_live_socket_alone(daemon: RunningDaemon, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="already running"):
        async with run_fake_daemon(tmp_path, socket=str(daemon.services.settings.socket), models=str(tmp_path / "m2")):
            pass
    assert daemon.services.settings.socket.exists()


async def test_stale_socket_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "corral.sock"))
    async with run_fake_daemon(tmp_path) as daemon:
        assert (await daemon.call("GET", "/api/version"))[0] == 200
    assert not (tmp_path / "corral.sock").exists()


async def test_model_with_a_damaged_manifest_can_be_removed_and_replaced(daemon: RunningDaemon) -> None:
    manifests = daemon.folder / "models" / "manifests" / "registry.ollama.ai" / "library"
    for name in ("bad", "worse"):
        (manifests / name).mkdir()
        (manifests / name / "latest").write_text("{")
    assert (await daemon.call("DELETE", "/api/delete", {"model": "bad"}))[0] == 200
    await daemon.create("worse")
    _, tags = await daemon.call("GET", "/api/tags")
    assert sorted(row["name"] for row in tags["models"]) == ["fake:latest", "worse:latest"]


@pytest.mark.parametrize(("encoding", "pack"), [("zstd", zstd.compress), ("gzip", gzip.compress)])
async def test_packed_body_is_read(daemon: RunningDaemon, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    headers = {"Content-Encoding": encoding}
    status, answer = await daemon.call("POST", "/api/show", pack(b'{"model": "fake"}'), headers=headers)
    assert (status, answer["capabilities"]) == (200, ["completion"])


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_body_that_lies_about_its_encoding_is_400(daemon: RunningDaemon, encoding: str) -> None:
    headers = {"Content-Encoding": encoding}
    status, answer = await daemon.call("POST", "/api/show", b'{"model": "fake"}', headers=headers)
    assert status == 400
    assert "cannot be read" in answer["error"]


async def test_status_says_that_there_is_no_cloud(daemon: RunningDaemon) -> None:
    assert (await daemon.call("GET", "/api/status"))[1]["cloud"]["disabled"] is True
