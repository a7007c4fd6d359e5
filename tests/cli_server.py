"""A daemon that says what a test tells it to, over a Unix socket or TCP, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import socketserver
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple


class Request(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Status(NamedTuple):
    """A reply with another status than 200. `value` is sent as JSON."""

    status: int
    value: Any


# A dict is a JSON answer, a list an NDJSON stream, a callable does what it likes with the handler.
Reply = dict[str, Any] | list[dict[str, Any]] | Status | Callable[["Handler"], None] | None


class Handler(BaseHTTPRequestHandler):
    """Looks its reply up in the server."""

    protocol_version = "HTTP/1.1"
    daemon: ScriptedDaemon

    def do(self) -> None:
        request = Request(self.command, self.path, self._read_body(), {k.lower(): v for k, v in self.headers.items()})
        reply = self.daemon.take(request)
        if callable(reply):
            reply(self)
        elif isinstance(reply, list):
            self.start_stream()
            for line in reply:
                self.send_line(line)
            self.wfile.write(b"0\r\n\r\n")
        elif isinstance(reply, Status):
            self._send(reply.status, json.dumps(reply.value).encode())
        else:
            self._send(200, b"" if reply is None else json.dumps(reply).encode())

    do_GET = do_POST = do_DELETE = do_HEAD = do

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_line(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def wait_for_hang_up(self) -> bool:
        """Block until the client closes its end; false after ten seconds."""
        self.connection.settimeout(10)
        try:
            return self.connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


class _Quiet(socketserver.ThreadingMixIn):
    """Clients may hang up at any time; anything else in a handler is a fault of the test and is shown."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[misc]


class UnixServer(_Quiet, socketserver.UnixStreamServer):
    pass


class TcpServer(_Quiet, socketserver.TCPServer):
    pass


class ScriptedDaemon:
    """Replies by (method, path): each reply once, the last one for ever. What has none gets 404."""

    def __init__(self, socket_path: Path | None) -> None:
        """Over TCP on a free port of 127.0.0.1 when there is no socket path."""
        self.requests: list[Request] = []
        self._replies: dict[tuple[str, str], list[Reply]] = {}
        handler = type("BoundHandler", (Handler,), {"daemon": self})
        self.server: UnixServer | TcpServer
        if socket_path is None:
            self.server = TcpServer(("127.0.0.1", 0), handler)
        else:
            self.server = UnixServer(str(socket_path), handler)
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def on(self, method: str, path: str, *replies: Reply) -> ScriptedDaemon:
        self._replies[method, path] = list(replies)
        return self

    def take(self, request: Request) -> Reply:
        self.requests.append(request)
        replies = self._replies.get((request.method, request.path))
        if replies is None:
            return Status(404, {"error": f"no reply scripted for {request.method} {request.path}"})
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def sent(self, path: str) -> list[Any]:
        """The JSON bodies that went to a path."""
        return [request.json for request in self.requests if request.path == path]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.server.shutdown()
            self.server.server_close()
