"""A Corral daemon of its own for a benchmark, in a folder that goes away with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "bench"


@contextmanager
def running_daemon(weights: Path, parameters: dict[str, int], **settings: str) -> Iterator[str]:
    """A daemon with a model named `bench`, of these weights and Modelfile parameters. Gives its base URL."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {
            **os.environ,
            "CORRAL_HOST": f"127.0.0.1:{port}",
            "CORRAL_SOCKET": f"{folder}/corral.sock",
            "CORRAL_MODELS": f"{folder}/models",
            "XDG_STATE_HOME": folder,
            **settings,
        }
        corral = [sys.executable, "-m", "corral"]
        daemon = subprocess.Popen([*corral, "serve"], env=environment, stderr=subprocess.DEVNULL)
        try:
            lines = [f"FROM {weights}", *(f"PARAMETER {name} {value}" for name, value in parameters.items())]
            while not Path(folder, "corral.sock").exists():
                time.sleep(0.05)
            subprocess.run(
                [*corral, "create", MODEL, "-f", "-"], input="\n".join(lines), text=True, env=environment, check=True,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            yield f"http://127.0.0.1:{port}"
        finally:
            daemon.terminate()
            daemon.wait()
