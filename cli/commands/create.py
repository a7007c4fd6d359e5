"""`corral create`: send a Modelfile and the files it names, then have the model made."""

from __future__ import annotations

import stat
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import click

from ...core.names import request_name
from ..client import Client
from ..command import DaemonCommand, open_client, warn
from ..progress import show_progress
from ..uploads import find_file, send_file

_DEFAULT_FILE = "Modelfile"


@click.command(cls=DaemonCommand)
@click.argument("name")
@click.option("-f", "--file", "file_name", metavar="FILE", help="The Modelfile; - is standard input. [./Modelfile]")
@click.option("-q", "--quantize", metavar="QUANT", help="Quantize the weights, for example to q4_K_M.")
def create(name: str, file_name: str | None, quantize: str | None) -> None:
    """Make a model from a Modelfile."""
    request_name(name)  # A wrong name should not cost an upload.
    content, folder = _read_modelfile(file_name)
    client = open_client()
    parsed = client.request("POST", "/api/modelfile", content)
    for warning in parsed.get("warnings") or []:
        warn(warning)
    body = {"model": name, **parsed["request"], **({"quantize": quantize} if quantize else {})}
    sources, files, adapters = _look_up(parsed, folder)
    show_progress(_create(client, body | sources, files, adapters))


def _read_modelfile(file_name: str | None) -> tuple[bytes, Path]:
    """The bytes, and the folder that paths in them start from. The file is read once: it may be a pipe."""
    if file_name == "-":
        return sys.stdin.buffer.read(), Path.cwd()
    path = Path(file_name or _DEFAULT_FILE)
    try:
        with path.open("rb") as file:
            content, mode = file.read(), path.stat().st_mode
    except OSError as error:
        hint = "" if file_name else "; name a Modelfile with -f"
        raise click.ClickException(f"{path} cannot be read: {error.strerror}{hint}") from None
    return content, path.absolute().parent if stat.S_ISREG(mode) else Path.cwd()


def _look_up(parsed: dict[str, Any], folder: Path) -> tuple[dict[str, str], list[Path], list[Path]]:
    """What FROM and ADAPTER mean: {"from": name} where there is one, files of weights, files of adapters."""
    names, files, adapters = [], [], []
    for source in parsed.get("from") or []:
        path = _find("FROM", source, folder)
        if path is None:
            names.append(source)
        else:
            files.append(path)
    if len(names) > 1:
        raise click.ClickException(f"line {names[1]['line']}: FROM: only one FROM may name a model")
    for source in parsed.get("adapters") or []:
        path = _find("ADAPTER", source, folder)
        if path is None:
            raise click.ClickException(f"line {source['line']}: ADAPTER: no such file: {folder / source['value']}")
        adapters.append(path)
    if draft := parsed.get("draft"):
        _find("DRAFT", draft, folder)
        warn(f"line {draft['line']}: DRAFT is not supported yet and was skipped")
    return {"from": names[0]["value"]} if names else {}, files, adapters


def _find(command: str, source: dict[str, Any], folder: Path) -> Path | None:
    try:
        return find_file(source["value"], folder)
    except FileNotFoundError as error:
        raise click.ClickException(f"line {source['line']}: {command}: {error}") from None


def _create(
    client: Client, body: dict[str, Any], files: list[Path], adapters: list[Path]
) -> Generator[dict[str, Any], None, None]:
    for key, paths in (("files", files), ("adapters", adapters)):
        if paths:
            body[key] = yield from _send_files(client, paths)
    yield from client.stream("/api/create", body)


def _send_files(client: Client, paths: list[Path]) -> Generator[dict[str, Any], None, dict[str, str]]:
    digests: dict[str, str] = {}
    for index, path in enumerate(dict.fromkeys(paths)):
        # Two folders may hold files of the same name.
        key = path.name if path.name not in digests else f"{index}/{path.name}"
        digests[key] = yield from send_file(client, path)
    return digests
