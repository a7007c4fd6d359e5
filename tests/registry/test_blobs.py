"""Blobs: named by their bytes, never half there, linked where possible."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from corral.core.errors import BlobNotFound, DigestMismatch, InvalidDigest, StoreFailed
from corral.registry.digests import parse_digest
from corral.registry.store import Store

DATA = b"weights" * 1000
DIGEST = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


def test_commit_names_a_blob_by_its_bytes(store: Store) -> None:
    with store.blobs.writer() as writer:
        writer.write(DATA[:100])
        writer.write(DATA[100:])
        assert writer.commit(DIGEST) == DIGEST
    assert store.layout.blob(DIGEST).name == DIGEST.replace(":", "-")
    assert store.blobs.read(DIGEST) == DATA


def test_wrong_digest_keeps_nothing(store: Store) -> None:
    with pytest.raises(DigestMismatch, match="expected"), store.blobs.writer() as writer:
        writer.write(b"other")
        writer.commit(DIGEST)
    assert not list(store.layout.blobs.iterdir())
    assert not list(store.layout.tmp.iterdir())


def test_writer_without_commit_keeps_nothing(store: Store) -> None:
    with store.blobs.writer() as writer:
        writer.write(DATA)
    assert not list(store.layout.blobs.iterdir())
    assert not list(store.layout.tmp.iterdir())


def test_absent_blob_is_an_error(store: Store) -> None:
    with pytest.raises(BlobNotFound):
        store.blobs.path(DIGEST)


def test_file_is_added_without_a_second_copy_of_its_bytes(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "m.gguf"
    source.write_bytes(DATA)
    seen: list[int] = []
    assert store.blobs.add_file(source, seen.append) == DIGEST
    assert sum(seen) == len(DATA)
    assert store.blobs.path(DIGEST).read_bytes() == DATA
    if store.layout.blob(DIGEST).stat().st_nlink == 2:
        assert store.layout.link_record(DIGEST).exists()


def test_symlink_is_followed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(DATA)
    (tmp_path / "link.gguf").symlink_to(tmp_path / "m.gguf")
    assert store.blobs.add_file(tmp_path / "link.gguf", lambda n: None) == DIGEST
    assert not store.layout.blob(DIGEST).is_symlink()


def test_linked_blob_whose_file_changed_is_refused(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "m.gguf"
    source.write_bytes(DATA)
    store.blobs.add_file(source, lambda n: None)
    if store.layout.blob(DIGEST).stat().st_nlink == 1:
        pytest.skip("this file system shares bytes copy on write")
    source.write_bytes(b"trained on")
    with pytest.raises(StoreFailed, match="was changed"):
        store.blobs.path(DIGEST)


def test_linked_blob_that_was_only_touched_is_fine(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "m.gguf"
    source.write_bytes(DATA)
    store.blobs.add_file(source, lambda n: None)
    os.utime(source, (1, 1))
    assert store.blobs.read(DIGEST) == DATA
    assert store.blobs.read(DIGEST) == DATA


def test_removing_a_linked_blob_keeps_the_users_file(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "m.gguf"
    source.write_bytes(DATA)
    store.blobs.add_file(source, lambda n: None)
    store.blobs.remove(DIGEST)
    assert source.read_bytes() == DATA
    assert not store.layout.link_record(DIGEST).exists()


@pytest.mark.parametrize("text", [f"sha256-{DIGEST[7:]}", f"sha256:{DIGEST[7:].upper()}", DIGEST])
def test_spellings_of_a_digest_name_the_same_blob(text: str) -> None:
    assert parse_digest(text) == DIGEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:abc",
        f"sha512:{'a' * 64}",
        f"{DIGEST}x",
        f"{DIGEST}\n",
        "sha256:../../../etc/hostname",
        "sha256:" + "g" * 64,
    ],
)
def test_anything_else_is_no_digest_and_no_path(store: Store, text: str) -> None:
    with pytest.raises(InvalidDigest):
        store.layout.blob(text)
