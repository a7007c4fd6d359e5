"""Writing files so that a crash leaves the old one or the new one: temp, fsync, rename, fsync the folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..core.errors import StoreFailed

_FICLONE = 0x40049409  # linux/fs.h: share the extents of another file (btrfs, xfs, …)
_REASONS = {
    errno.ENOSPC: "the disk is full: free some space and try again; what is already there is kept",
    errno.EDQUOT: "the disk quota is used up: free some space and try again",
    errno.EACCES: "permission denied: check who owns the folder of models",
    errno.EPERM: "permission denied: check who owns the folder of models",
    errno.EROFS: "the file system is read-only",
}


@contextlib.contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn OSError into StoreFailed with words a user can act on, and no path."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or "input/output error")
        raise StoreFailed(f"{doing}: {reason}") from error


@contextlib.contextmanager
def temporary_file(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file to write; gone afterwards unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=folder)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def flush(file: BinaryIO) -> None:
    """Bring a file's bytes to the disk."""
    file.flush()
    os.fsync(file.fileno())


def rename_durably(source: Path, target: Path) -> None:
    """Rename, and bring the new name to the disk. The source's bytes must be flushed already."""
    source.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_atomically(path: Path, data: bytes, tmp: Path) -> None:
    """Give `path` the content `data`, or leave it as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_file(tmp) as (file, temporary):
        file.write(data)
        temporary.chmod(0o644)
        flush(file)
        rename_durably(temporary, path)


def reflink(source: Path, target: Path) -> bool:
    """Make `target` share the extents of `source`, copy on write. False where the file system cannot."""
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
        except OSError:
            return False
        flush(writer)
        return True


def hard_link(source: Path, target: Path) -> bool:
    """Make `target` a second name of `source`. False across file systems or where links are forbidden."""
    try:
        target.unlink(missing_ok=True)
        os.link(source, target)
    except OSError:
        return False
    return True
