"""Blobs: bytes under their own digest. A blob gets its name only when its bytes have been hashed and flushed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ..core.errors import BlobNotFound, DigestMismatch, StoreFailed
from .digests import parse_digest
from .disk import disk_errors, flush, hard_link, reflink, rename_durably, temporary_file
from .layout import Layout

CHUNK_BYTES = 1 << 20
Advance = Callable[[int], None]


class LinkRecord(msgspec.Struct, frozen=True):
    """What a shared file looked like when its digest was taken."""

    size: int
    mtime_ns: int


class BlobWriter:
    """A blob being written. Call `write` from any thread, one at a time, then `commit`."""

    def __init__(self, blobs: BlobStore, file: BinaryIO, path: Path) -> None:
        self._blobs = blobs
        self._file = file
        self._path = path
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def commit(self, expected: str | None = None) -> str:
        """Give the bytes their name and return the digest.

        Errors: DigestMismatch when another digest was expected; nothing is kept then.
        """
        digest = f"sha256:{self._hash.hexdigest()}"
        if expected is not None and digest != expected:
            raise DigestMismatch(f'digest mismatch, expected "{expected}", got "{digest}"')
        flush(self._file)
        self._path.chmod(0o644)
        self._blobs.adopt(self._path, digest)
        return digest


class BlobStore:
    """The blobs folder."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def path(self, digest: str) -> Path:
        """The file of a blob. Errors: BlobNotFound; StoreFailed when a file that it shares has changed since."""
        path = self._layout.blob(digest)
        if not path.is_file():
            raise BlobNotFound(f"blob {digest} is not in the store: pull or create its model again")
        self._check_link(digest, path)
        return path

    def has(self, digest: str) -> bool:
        """Whether a blob is there."""
        return self._layout.blob(digest).is_file()

    def read(self, digest: str) -> bytes:
        """The bytes of a small blob."""
        with disk_errors("reading a layer"):
            return self.path(digest).read_bytes()

    def remove(self, digest: str) -> None:
        """Remove a blob; its bytes stay where another file shares them."""
        self._layout.blob(digest).unlink(missing_ok=True)
        self._layout.link_record(digest).unlink(missing_ok=True)

    def digests(self) -> Iterator[tuple[str, Path]]:
        """Every blob. Files of other names, such as Ollama's partial downloads, are passed over."""
        for path in self._layout.blobs.iterdir():
            if len(path.name) == 71 and path.name.startswith("sha256-"):
                yield parse_digest(path.name), path

    @contextlib.contextmanager
    def writer(self) -> Iterator[BlobWriter]:
        """A blob to write; without a commit nothing is kept."""
        with disk_errors("writing to the store"), temporary_file(self._layout.tmp) as (file, path):
            yield BlobWriter(self, file, path)

    def add_bytes(self, data: bytes) -> str:
        """Store small content and return its digest."""
        with self.writer() as writer:
            writer.write(data)
            return writer.commit()

    def add_file(self, source: Path, advance: Advance) -> str:
        """Store a file by reflink or hard link where that works, else by copy, and return its digest.

        `advance` gets the number of bytes of each step. Errors: StoreFailed when the file changes meanwhile.
        """
        source = source.resolve()
        with disk_errors("reading the file"), temporary_file(self._layout.tmp) as (file, path):
            file.close()
            if reflink(source, path):
                digest = hash_file(path, advance)
            elif hard_link(source, path):
                return self._adopt_linked(path, advance)
            else:
                digest = _copy(source, path, advance)
            path.chmod(0o644)
            self.adopt(path, digest)
            return digest

    def adopt(self, path: Path, digest: str) -> None:
        """Move a flushed file into place under the digest of its bytes."""
        if not self.has(digest):
            rename_durably(path, self._layout.blob(digest))

    def _adopt_linked(self, path: Path, advance: Advance) -> str:
        before = path.stat()
        digest = hash_file(path, advance)
        after = path.stat()
        if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
            raise StoreFailed("the file changed while it was read: wait until it is complete and try again")
        if not self.has(digest):
            # The record comes first: a linked blob without one would be trusted whatever happens to the file.
            record = LinkRecord(after.st_size, after.st_mtime_ns)
            self._layout.link_record(digest).write_bytes(msgspec.json.encode(record))
            rename_durably(path, self._layout.blob(digest))
        return digest

    def _check_link(self, digest: str, path: Path) -> None:
        record_path = self._layout.link_record(digest)
        if not record_path.exists():
            return
        record = msgspec.json.decode(record_path.read_bytes(), type=LinkRecord)
        stat = path.stat()
        if (stat.st_size, stat.st_mtime_ns) == (record.size, record.mtime_ns):
            return
        if hash_file(path, lambda num_bytes: None) != digest:
            raise StoreFailed(
                f"blob {digest} shares its bytes with a file that was changed: create the model again from that file"
            )
        record_path.write_bytes(msgspec.json.encode(LinkRecord(stat.st_size, stat.st_mtime_ns)))


def hash_file(path: Path, advance: Advance) -> str:
    """The digest of a file."""
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            sha256.update(data)
            advance(len(data))
    return f"sha256:{sha256.hexdigest()}"


def _copy(source: Path, target: Path, advance: Advance) -> str:
    sha256 = hashlib.sha256()
    with source.open("rb") as reader, target.open("wb") as writer:
        while data := reader.read(CHUNK_BYTES):
            sha256.update(data)
            writer.write(data)
            advance(len(data))
        writer.flush()
        os.fsync(writer.fileno())
    return f"sha256:{sha256.hexdigest()}"
