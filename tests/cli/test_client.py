"""The HTTP client: errors, streams that break, uploads, TCP."""

from __future__ import annotations

import hashlib
import queue

import pytest
from cli_server import ScriptedDaemon, Status
from corral.cli.client import Client
from corral.cli.connection import Unreachable
from corral.cli.uploads import send_file
from corral.core.address import parse_address
from corral.core.errors import CorralError


def test_error_answer_keeps_status_and_text(daemon, socket_path) -> None:
    daemon.on("POST", "/api/show", Status(503, {"error": "too many requests wait"}))
    with pytest.raises(CorralError, match="too many requests wait") as caught:
        Client(socket_path).request("POST", "/api/show", {"model": "m"})
    assert (caught.value.code, caught.value.status) == ("queue_full", 503)


def test_error_answer_without_json_names_the_status(daemon, socket_path) -> None:
    daemon.on("GET", "/api/tags", Status(500, ["not an error object"]))
    with pytest.raises(CorralError, match="answered 500"):
        Client(socket_path).request("GET", "/api/tags")


def test_stream_raises_when_a_line_is_an_error(daemon, socket_path) -> None:
    daemon.on("POST", "/api/pull", [{"status": "pulling manifest"}, {"error": "no such model"}])
    lines = Client(socket_path).stream("/api/pull", {"model": "m"})
    assert next(lines) == {"status": "pulling manifest"}
    with pytest.raises(CorralError, match="no such model"):
        next(lines)


def test_stream_raises_when_it_ends_before_its_last_line(daemon, socket_path) -> None:
    daemon.on("POST", "/api/pull", [{"status": "pulling manifest"}])
    with pytest.raises(Unreachable, match="before its answer was complete"):
        list(Client(socket_path).stream("/api/pull", {"model": "m"}))


def test_stream_hangs_up_when_it_is_closed(daemon, socket_path) -> None:
    hung_up: queue.Queue[bool] = queue.Queue()

    def answer(handler) -> None:
        handler.start_stream()
        handler.send_line({"response": "a"})
        hung_up.put(handler.wait_for_hang_up())
        handler.close_connection = True

    daemon.on("POST", "/api/generate", answer)
    lines = Client(socket_path).stream("/api/generate", {"model": "m"})
    next(lines)
    lines.close()
    assert hung_up.get(timeout=20)


def test_connection_refused_names_the_place(socket_path) -> None:
    with pytest.raises(Unreachable, match=f"no daemon answers on {socket_path}"):
        Client(socket_path).request("GET", "/api/version")


@pytest.fixture
def remote():
    scripted = ScriptedDaemon(None)
    yield scripted
    scripted.close()


def _client(remote: ScriptedDaemon) -> Client:
    return Client(parse_address(f"127.0.0.1:{remote.port}"))


def _drain(generator) -> tuple[list[dict], str]:
    lines = []
    while True:
        try:
            lines.append(next(generator))
        except StopIteration as stop:
            return lines, stop.value


def test_file_is_uploaded_over_tcp_when_the_daemon_lacks_it(remote, tmp_path) -> None:
    content = bytes(range(256)) * 10_000
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    remote.on("HEAD", f"/api/blobs/{digest}", Status(404, {}))
    remote.on("POST", f"/api/blobs/{digest}", Status(201, {}))
    lines, sent_digest = _drain(send_file(_client(remote), path))
    head, post = remote.requests
    assert sent_digest == digest
    assert (head.method, post.method) == ("HEAD", "POST")
    assert post.headers["transfer-encoding"] == "chunked"
    assert post.body == content
    assert lines[-1] == {"status": "uploading m.gguf"}


def test_file_is_not_uploaded_over_tcp_when_the_daemon_has_it(remote, tmp_path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"abc")
    digest = f"sha256:{hashlib.sha256(b'abc').hexdigest()}"
    remote.on("HEAD", f"/api/blobs/{digest}", None)
    _drain(send_file(_client(remote), path))
    assert [request.method for request in remote.requests] == ["HEAD"]


def test_stranger_on_the_port_is_told_apart(remote) -> None:
    def answer(handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "5")
        handler.end_headers()
        handler.wfile.write(b"<html")

    remote.on("GET", "/api/tags", answer)
    with pytest.raises(Unreachable, match="does not speak Corral's API"):
        _client(remote).request("GET", "/api/tags")
