"""The files that a Modelfile names: found on this machine, then brought into the daemon's store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click

from .client import Client

_CHUNK_BYTES = 1 << 20
_WEIGHT_ENDINGS = (".gguf", ".safetensors", ".bin")
_PATH_START = re.compile(r"\.{1,2}([/\\]|$)|/|~|[A-Za-z]:[\\/]")


def looks_like_path(value: str) -> bool:
    """Whether this cannot be meant as a model's name."""
    return bool(_PATH_START.match(value)) or "\\" in value or value.lower().endswith(_WEIGHT_ENDINGS)


def resolve_path(value: str, folder: Path) -> Path:
    """The absolute path that a value means, whether or not something is there."""
    try:
        expanded = Path(value).expanduser()
    except RuntimeError:  # ~someone, where there is no such user
        expanded = Path(value)
    return (folder / expanded).absolute()


def find_file(value: str, folder: Path) -> Path | None:
    """The file that a value in a Modelfile or on the command line means, or None when it is a model's name.

    Errors: FileNotFoundError whose text names the path tried, for a path where no file is.
    """
    if value.startswith("file:///"):
        value = unquote(value.removeprefix("file://"))
    if "://" in value:
        return None
    path = resolve_path(value, folder)
    if path.is_file():
        return path
    if not looks_like_path(value):
        return None
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a folder: folders of safetensors are not supported yet, name a GGUF file")
    hint = " (backslashes are not needed before spaces)" if "\\" in value else ""
    raise FileNotFoundError(f"no such file: {path}{hint}")


def send_file(client: Client, path: Path) -> Generator[dict[str, Any], None, str]:
    """Bring a file into the store. Yields progress lines and returns its digest.

    On this machine the daemon links the file; elsewhere its bytes are sent unless they are there already.
    Errors: Failure, Unreachable, ClickException when the file cannot be read.
    """
    if client.is_local:
        return (yield from _link(client, path))
    digest = yield from _hash(path)
    if not client.has_blob(digest):
        yield {"status": f"uploading {path.name}"}
        client.upload(digest, _chunks(path))
    return digest


def _link(client: Client, path: Path) -> Generator[dict[str, Any], None, str]:
    with closing(client.stream("/api/blobs", {"path": str(path)})) as lines:
        for line in lines:
            if line.get("status") == "success":
                return str(line["digest"])
            yield line
    raise click.ClickException(f"the daemon did not say under which digest it keeps {path.name}")


def _hash(path: Path) -> Generator[dict[str, Any], None, str]:
    hasher = hashlib.sha256()
    total = path.stat().st_size
    completed = 0
    for chunk in _chunks(path):
        hasher.update(chunk)
        completed += len(chunk)
        yield {"status": f"hashing {path.name}", "total": total, "completed": completed}
    return f"sha256:{hasher.hexdigest()}"


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
