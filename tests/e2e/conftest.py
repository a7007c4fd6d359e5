"""A machine of one's own for end-to-end tests: fresh folders, a real daemon as a process, the real `corral` command."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from daemons import free_port
from models import smollm2_path


class Machine:
    """Folders and environment of one imaginary user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.socket = folder / "corral.sock"
        self.models = folder / "models"
        private = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "STATE", "DATA", "CACHE")}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CORRAL_", "OLLAMA_"))},
            **private,
            "HOME": str(folder),
            "CORRAL_HOST": self.url,
            "CORRAL_SOCKET": str(self.socket),
            "CORRAL_MODELS": str(self.models),
        }

    def corral(self, *arguments: str, stdin: str = "", timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for it."""
        command = [sys.executable, "-m", "corral", *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=self.environment, timeout=timeout, check=False
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "corral", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def start_daemon(self) -> psutil.Process:
        """Start the daemon and wait until it answers."""
        process = self.start("serve")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{self.url}/api/version")
                return psutil.Process(process.pid)
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.05)
        pytest.fail("the daemon does not answer")

    def daemon(self) -> psutil.Process:
        """The daemon that listens on this machine's port."""
        port = int(self.url.rsplit(":", 1)[1])
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                return psutil.Process(connection.pid)
        pytest.fail("no daemon listens")

    def runners(self) -> list[psutil.Process]:
        """Runner processes of the daemon."""
        return [child for child in self.daemon().children() if "corral.backends.runner" in " ".join(child.cmdline())]

    def end(self) -> None:
        """End the daemon and all that it started."""
        with contextlib.suppress(pytest.fail.Exception):
            daemon = self.daemon()
            children = daemon.children(recursive=True)
            daemon.send_signal(signal.SIGTERM)
            psutil.wait_procs([daemon, *children], timeout=10)
            for process in [daemon, *children]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine with nothing on it."""
    machine = Machine(tmp_path)
    yield machine
    machine.end()


@pytest.fixture(scope="module")
def smol(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose daemon runs and has SmolLM2 installed as `smol`; shared by the tests of a module."""
    machine = Machine(tmp_path_factory.mktemp("smol"))
    (machine.folder / "Modelfile").write_text(f"FROM {smollm2_path()}\n")
    created = machine.corral("create", "smol", "-f", str(machine.folder / "Modelfile"))
    assert created.returncode == 0, created.stderr
    yield machine
    machine.end()
