"""Fixtures of the command line's tests: a scripted daemon on a socket, and a way to run commands against it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cli_server import ScriptedDaemon
from corral.cli.main import run as run_main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """A path short enough for a socket, whatever the temporary folder of pytest is called."""
    with tempfile.TemporaryDirectory(prefix="corral-") as folder:
        yield Path(folder) / "s"


@pytest.fixture
def environment(socket_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the commands see: the socket, empty folders, nothing of the person who runs the tests."""
    for name in [name for name in os.environ if name.startswith(("CORRAL_", "OLLAMA_"))]:
        monkeypatch.delenv(name)
    values = {"CORRAL_SOCKET": str(socket_path), "COLUMNS": "100"}
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        values[f"XDG_{kind}_HOME"] = str(tmp_path / kind.lower())
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


@pytest.fixture
def daemon(socket_path: Path, environment: dict[str, str]) -> Iterator[ScriptedDaemon]:
    scripted = ScriptedDaemon(socket_path)
    yield scripted
    scripted.close()


@pytest.fixture
def corral(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Runs a command line in this process. Nothing is a terminal there."""

    def run(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run_main(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def spawn_corral(environment: dict[str, str]) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a command line as a process of its own, with pipes."""

    def spawn(*arguments: str, **changes: object) -> subprocess.Popen[bytes]:
        settings: dict[str, object] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **changes,
        }
        return subprocess.Popen([sys.executable, "-m", "corral", *arguments], **settings)  # type: ignore[call-overload]

    return spawn
