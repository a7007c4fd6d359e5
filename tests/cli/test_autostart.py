"""Finding and starting the daemon, with a starter, a clock and a child of the test's own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_server import ScriptedDaemon
from corral.cli.autostart import START_SECONDS, Starter, connect, spawn_daemon
from corral.cli.connection import Unreachable
from corral.core.settings import Settings, load_settings


class FakeChild:
    """A process that has ended with a code, or runs."""

    pid = 4242

    def __init__(self, exit_code: int | None = None) -> None:
        self.exit_code = exit_code

    def poll(self) -> int | None:
        return self.exit_code


class FakeClock:
    """Time passes only in sleep, where something may happen after a number of naps."""

    def __init__(self, after: int = 0, then: Callable[[], object] | None = None) -> None:
        self.time = 0.0
        self._naps_left = after
        self._then = then

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self._naps_left -= 1
        if self._naps_left == 0 and self._then:
            self._then()


@pytest.fixture
def settings(environment: dict[str, str]) -> Settings:
    return load_settings()


def _starter(spawn: Callable[[Path], FakeChild], log: Path, clock: FakeClock | None = None) -> Starter:
    clock = clock or FakeClock()
    return Starter(spawn, log, clock.now, clock.sleep)


def _refuse(log: Path) -> FakeChild:
    raise AssertionError("nothing should have been started")


def _answering(socket_path: Path, daemons: list[ScriptedDaemon]) -> ScriptedDaemon:
    daemons.append(ScriptedDaemon(socket_path).on("GET", "/api/version", {"version": "1"}))
    return daemons[-1]


@pytest.fixture
def daemons():
    started: list[ScriptedDaemon] = []
    yield started
    for daemon in started:
        daemon.close()


def test_running_daemon_is_used(settings, daemon, tmp_path) -> None:
    client = connect(settings, True, _starter(_refuse, tmp_path / "log"))
    daemon.on("GET", "/api/version", {"version": "9"})
    assert client.request("GET", "/api/version") == {"version": "9"}
    assert client.is_local


def test_remote_host_is_reached_over_tcp_and_never_started(settings, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CORRAL_HOST", "http://models.example:8080")
    client = connect(load_settings(), True, _starter(_refuse, tmp_path / "log"))
    assert not client.is_local
    assert client.place == "at http://models.example:8080"


@pytest.mark.parametrize("host", ["0.0.0.0:11501", "::", "[::1]:11501", "localhost", "11501", ":11501"])
def test_socket_is_used_when_the_host_is_this_machine(settings, daemon, tmp_path, monkeypatch, host: str) -> None:
    monkeypatch.setenv("CORRAL_HOST", host)
    assert connect(load_settings(), False, _starter(_refuse, tmp_path / "log")).is_local


def test_daemon_is_started_and_announced_when_none_listens(settings, daemons, tmp_path, capsys) -> None:
    log = tmp_path / "log"

    def spawn(path: Path) -> FakeChild:
        _answering(settings.socket, daemons)
        return FakeChild()

    client = connect(settings, True, _starter(spawn, log))
    assert client.request("GET", "/api/version") == {"version": "1"}
    assert capsys.readouterr().err == f"corral: started the daemon in the background (pid 4242, log {log})\n"


def test_daemon_is_started_when_the_socket_is_stale(settings, daemons, tmp_path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(settings.socket))

    def spawn(path: Path) -> FakeChild:
        settings.socket.unlink()
        _answering(settings.socket, daemons)
        return FakeChild()

    assert connect(settings, True, _starter(spawn, tmp_path / "log")).is_local
    assert len(daemons) == 1


def test_other_daemon_is_used_when_ours_lost_the_race(settings, daemons, tmp_path, capsys) -> None:
    clock = FakeClock(after=3, then=lambda: _answering(settings.socket, daemons))
    connect(settings, True, _starter(lambda log: FakeChild(exit_code=1), tmp_path / "log", clock))
    assert len(daemons) == 1
    assert capsys.readouterr().err == ""


def test_reason_is_our_part_of_the_log_when_the_daemon_ends_at_once(settings, tmp_path, capsys) -> None:
    log = tmp_path / "log"
    log.write_text("Error: of an earlier daemon\n")

    def spawn(path: Path) -> FakeChild:
        with path.open("a") as file:
            file.write("reading settings\nError: port 11434 is in use\n")
        return FakeChild(exit_code=1)

    with pytest.raises(Unreachable) as caught:
        connect(settings, True, _starter(spawn, log))
    assert caught.value.message == (f"the daemon did not start (exit code 1): port 11434 is in use (log: {log})")
    assert capsys.readouterr().err == "  reading settings\n"


def test_waiting_ends_when_the_daemon_never_answers(settings, tmp_path) -> None:
    clock = FakeClock()
    with pytest.raises(Unreachable, match="did not answer within 30 s"):
        connect(settings, True, _starter(lambda log: FakeChild(), tmp_path / "log", clock))
    assert START_SECONDS <= clock.time < START_SECONDS + 1


def test_long_socket_path_is_an_error_that_says_so(settings, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CORRAL_SOCKET", str(tmp_path / ("x" * 120)))
    with pytest.raises(Unreachable, match="too long for a socket: set CORRAL_SOCKET"):
        connect(load_settings(), True, _starter(_refuse, tmp_path / "log"))


def test_spawned_daemon_is_detached_and_writes_to_the_log(environment, tmp_path, monkeypatch) -> None:
    # A wrong setting ends it before it does anything, which is all that is wanted here.
    monkeypatch.setenv("CORRAL_MAX_QUEUE", "many")
    log = tmp_path / "folder" / "daemon.log"
    child = spawn_daemon(log)
    assert child.wait(timeout=20) == 1
    assert log.read_text().startswith("Error: setting max_queue (CORRAL_MAX_QUEUE)")
