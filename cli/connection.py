"""HTTP connections to the daemon: over a Unix socket, TCP or TLS. The only file that opens a socket."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

import click

from ..core.address import Address

CONNECT_TIMEOUT_SECONDS = 10.0


class Unreachable(click.ClickException):
    """No daemon answers, or it went away in the middle of an answer."""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        """Open the socket. Errors: OSError."""
        self.sock = open_unix_socket(self._path, CONNECT_TIMEOUT_SECONDS)
        self.sock.settimeout(None)


class TcpConnection(http.client.HTTPConnection):
    """HTTP over TCP: a limit for connecting, none for answers, since a load may take minutes."""

    def connect(self) -> None:
        """Open the socket. Errors: OSError."""
        super().connect()
        self.sock.settimeout(None)


class TlsConnection(http.client.HTTPSConnection):
    """HTTP over TLS, with the same limits."""

    def connect(self) -> None:
        """Open the socket. Errors: OSError, which those of TLS are too."""
        super().connect()
        self.sock.settimeout(None)


def open_connection(target: Path | Address) -> http.client.HTTPConnection:
    """A connection, not open yet, to a socket's path or an address."""
    if isinstance(target, Path):
        return UnixConnection(target)
    kind = TlsConnection if target.scheme == "https" else TcpConnection
    return kind(target.connect_host, target.port, timeout=CONNECT_TIMEOUT_SECONDS)


def open_unix_socket(path: Path, timeout_seconds: float) -> socket.socket:
    """A connected socket. Errors: OSError; Unreachable where the system has no Unix sockets."""
    family = getattr(socket, "AF_UNIX", None)
    if family is None:
        raise Unreachable("this Python has no Unix sockets, which Corral needs on this machine")
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.settimeout(timeout_seconds)
    try:
        opened.connect(str(path))
    except OSError:
        opened.close()
        raise
    return opened
