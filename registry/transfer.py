"""The one download engine: a file over HTTP into the store's transfers folder, going on where an earlier try ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import aiohttp
import msgspec

from ..core.errors import DigestMismatch, SourceFailed
from .blobs import CHUNK_BYTES, hash_file
from .disk import disk_errors, flush
from .layout import Layout
from .sources.source import RemoteFile

log = logging.getLogger(__name__)

STALL_SECONDS = 30.0
# Answers that may be different the next time they are asked for.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})

Advance = Callable[[int, int], None]


class _Interrupted(Exception):
    """The connection broke or stalled; what has arrived is kept."""


class Retry(msgspec.Struct, frozen=True):
    """How often a download is tried again without progress, and the first wait in seconds; each wait doubles."""

    max_tries: int = 6
    wait_seconds: float = 0.5
    max_wait_seconds: float = 8.0


class Journal(msgspec.Struct, frozen=True):
    """What a part file is of. A part whose journal names other bytes is started again."""

    name: str
    sha256: str
    size: int


async def download(
    http: aiohttp.ClientSession, file: RemoteFile, layout: Layout, advance: Advance, retry: Retry
) -> Path:
    """Fetch a file, checked against its SHA-256; `advance` gets (completed, total) in bytes and never runs backwards.

    Returns the path of the whole file in the transfers folder; the caller moves or removes it.
    Errors: SourceFailed after too many tries without progress; DigestMismatch (the bytes are thrown away then).
    """
    assert file.url and file.sha256, "sources give url and sha256 for remote files"
    part = layout.transfer(file.sha256, ".part")
    await asyncio.to_thread(_start_journal, layout, file)
    progress = _Progress(advance, file.size)
    tries = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            await _fetch(http, file, part, progress)
            break
        except _Interrupted as error:
            after = part.stat().st_size if part.exists() else 0
            tries = 1 if after > before else tries + 1
            if tries >= retry.max_tries:
                raise SourceFailed(f"{file.name}: {error}; what has arrived is kept, pull again to go on") from error
            log.info("download of %s interrupted at %d bytes (%s), try %d", file.name, after, error, tries)
            await asyncio.sleep(min(retry.wait_seconds * 2 ** (tries - 1), retry.max_wait_seconds))
    await asyncio.to_thread(_check, part, file, layout)
    return part


def discard(layout: Layout, file: RemoteFile) -> None:
    """Forget a download, whole or in part."""
    assert file.sha256
    for suffix in (".part", ".json"):
        layout.transfer(file.sha256, suffix).unlink(missing_ok=True)


class _Progress:
    """Reports what is complete, but no less than was reported before, although a restart may begin again at 0."""

    def __init__(self, advance: Advance, total: int) -> None:
        self._advance = advance
        self._total = total
        self._highest = -1

    def report(self, completed: int) -> None:
        if completed > self._highest:
            self._highest = completed
            self._advance(completed, max(self._total, completed))


async def _fetch(http: aiohttp.ClientSession, file: RemoteFile, part: Path, progress: _Progress) -> None:
    start = part.stat().st_size if part.exists() else 0
    if file.size and start == file.size:
        progress.report(start)
        return
    headers = {"Range": f"bytes={start}-"} if start else {}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=STALL_SECONDS, sock_read=STALL_SECONDS)
    try:
        async with http.get(str(file.url), headers=headers, timeout=timeout) as response:
            start = _agree_on_start(response, start, file)
            with disk_errors("saving the download"), part.open("r+b" if start else "wb") as output:
                output.seek(start)
                output.truncate()
                progress.report(start)
                await _save(response, output, start, progress)
    except TimeoutError:
        raise _Interrupted("the connection stalled") from None
    except aiohttp.ClientError as error:
        raise _Interrupted(f"the connection broke ({type(error).__name__})") from None
    arrived = part.stat().st_size
    if file.size and arrived < file.size:
        raise _Interrupted(f"the connection ended after {arrived} of {file.size} bytes")


def _agree_on_start(response: aiohttp.ClientResponse, start: int, file: RemoteFile) -> int:
    """Where the answer's bytes belong: `start` only when a 206 says so, else the beginning."""
    if response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        return start
    if response.status == 200:
        return 0
    if response.status in _PASSING:
        raise _Interrupted(f"the server answered {response.status}")
    raise SourceFailed(f"{file.name}: the server answered {response.status}")


async def _save(response: aiohttp.ClientResponse, output: BinaryIO, completed: int, progress: _Progress) -> None:
    buffer = bytearray()
    try:
        async for data in response.content.iter_any():
            buffer += data
            if len(buffer) >= CHUNK_BYTES:
                await asyncio.to_thread(output.write, bytes(buffer))
                completed += len(buffer)
                progress.report(completed)
                buffer.clear()
    finally:
        # Also when the connection broke or the pull was cancelled: these bytes need not be fetched again.
        output.write(buffer)
        flush(output)
    progress.report(completed + len(buffer))


def _start_journal(layout: Layout, file: RemoteFile) -> None:
    journal = Journal(file.name, file.sha256 or "", file.size)
    path = layout.transfer(journal.sha256, ".json")
    with disk_errors("preparing the download"):
        try:
            same = msgspec.json.decode(path.read_bytes(), type=Journal) == journal
        except (FileNotFoundError, msgspec.MsgspecError):
            same = False
        if not same:
            discard(layout, file)
            path.write_bytes(msgspec.json.encode(journal))


def _check(part: Path, file: RemoteFile, layout: Layout) -> None:
    with disk_errors("checking the download"):
        digest = hash_file(part, lambda num_bytes: None)
    if digest != f"sha256:{file.sha256}":
        discard(layout, file)
        raise DigestMismatch(f'{file.name}: digest mismatch, expected "sha256:{file.sha256}", got "{digest}"')
