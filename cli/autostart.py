"""Finding the daemon, or starting one in the background when none listens on this machine's socket."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import click

from ..core.errors import CorralError
from ..core.settings import Settings, log_path
from .client import Client
from .connection import Unreachable, open_unix_socket

POLL_SECONDS = 0.05
START_SECONDS = 30.0
# A child that finds another daemon under way ends at once; that daemon may need a moment more until it answers.
AFTER_EXIT_SECONDS = 1.0
_PROBE_SECONDS = 2.0
_SHOWN_LOG_LINES = 10


class Child(Protocol):
    """A started daemon, as subprocess.Popen gives it."""

    pid: int

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""


class Starter(NamedTuple):
    """What starting needs of the system: processes, a clock, a log. Tests put their own in its place."""

    spawn: Callable[[Path], Child]
    log: Path
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def connect(settings: Settings, start: bool, starter: Starter | None = None) -> Client:
    """A client of the daemon that the settings name. On this machine one is started when none listens.

    Errors: Unreachable when there is none, with the reason when it did not start.
    """
    if not (settings.host.is_loopback or settings.host.is_wildcard):
        return Client(settings.host)
    client = Client(settings.socket)
    if is_listening(settings.socket):
        _check_owner(settings)
        return client
    if not start:
        raise Unreachable(f"no daemon runs (nothing listens on {settings.socket}): start one with `corral serve`")
    with _one_at_a_time(settings.socket):
        # Another command may have started one while this one waited.
        if not is_listening(settings.socket):
            _start(client, starter or Starter(spawn_daemon, log_path()))
    return client


def is_listening(socket_path: Path) -> bool:
    """Whether something accepts connections on the socket. Errors: Unreachable where this user may not ask."""
    try:
        open_unix_socket(socket_path, _PROBE_SECONDS).close()
    except PermissionError:
        raise Unreachable(f"the socket {socket_path} belongs to someone else") from None
    except OSError as error:
        if "too long" in str(error):
            raise Unreachable(f"the path {socket_path} is too long for a socket: set CORRAL_SOCKET") from None
        return False
    return True


def spawn_daemon(log: Path) -> subprocess.Popen[bytes]:
    """Start `corral serve` apart from this terminal, its output appended to the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "corral", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _start(client: Client, starter: Starter) -> None:
    log_start = starter.log.stat().st_size if starter.log.exists() else 0
    try:
        child = starter.spawn(starter.log)
    except OSError as error:
        raise Unreachable(f"the daemon could not be started: {error}") from None
    deadline = starter.now() + START_SECONDS
    exit_code = None
    while not _answers(client):
        if exit_code is None:
            exit_code = child.poll()
            if exit_code is not None:
                deadline = starter.now() + AFTER_EXIT_SECONDS
        if starter.now() >= deadline:
            raise _not_started(exit_code, starter.log, log_start)
        starter.sleep(POLL_SECONDS)
    if child.poll() is None:
        click.echo(f"corral: started the daemon in the background (pid {child.pid}, log {starter.log})", err=True)


def _answers(client: Client) -> bool:
    try:
        client.request("GET", "/api/version")
    except (Unreachable, CorralError):
        return False
    return True


def _not_started(exit_code: int | None, log: Path, log_start: int) -> Unreachable:
    """The error for a daemon that ended or hangs; what it wrote before its last line goes to standard error first."""
    if exit_code is None:
        return Unreachable(f"the daemon did not answer within {START_SECONDS:.0f} s; its log is {log}")
    lines = _tail(log, log_start)
    for line in lines[:-1]:
        click.echo(f"  {line}", err=True)
    reason = lines[-1].removeprefix("Error: ") if lines else "it wrote nothing"
    return Unreachable(f"the daemon did not start (exit code {exit_code}): {reason} (log: {log})")


def _tail(log: Path, start: int) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(start)
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-_SHOWN_LOG_LINES:]


def _check_owner(settings: Settings) -> None:
    """The default place can lie in a folder that others may write; a prompt must not go to a stranger's socket."""
    import os

    if settings.sources["socket"] != "default" or not hasattr(os, "getuid"):
        return
    if settings.socket.stat().st_uid not in (0, os.getuid()):
        raise Unreachable(f"the socket {settings.socket} belongs to another user: set CORRAL_SOCKET to one of yours")


@contextlib.contextmanager
def _one_at_a_time(socket_path: Path) -> Iterator[None]:
    """Let one command start a daemon, and others wait for it. Where there are no file locks, nobody waits."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        socket_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = socket_path.with_name(f"{socket_path.name}.starting").open("w")
    except OSError as error:
        raise Unreachable(f"the folder of the socket {socket_path} cannot be used: {error.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
