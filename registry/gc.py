"""Garbage collection: mark what manifests name, sweep the rest. Runs under the store's lock only."""

from __future__ import annotations

import time
from collections.abc import Iterable

from .blobs import BlobStore
from .manifests import ManifestStore

# A blob nobody names may be an upload whose create has yet to come, so age decides; Ollama may share the folder too.
MIN_AGE_SECONDS = 24 * 3600


def mark(manifests: ManifestStore) -> set[str]:
    """Digests that some installed model needs.

    Errors: StoreFailed when a manifest is damaged, since nobody can tell then what it needs.
    """
    return {blob.digest for model in manifests.list_models(strict=True) for blob in model.manifest.blobs}


def sweep(blobs: BlobStore, candidates: Iterable[str], keep: set[str]) -> list[str]:
    """Remove the candidates that nobody keeps, and return them."""
    removed = [digest for digest in candidates if digest not in keep and blobs.has(digest)]
    for digest in removed:
        blobs.remove(digest)
    return removed


def stale(blobs: BlobStore, now: float | None = None) -> list[str]:
    """Blobs old enough that no running upload or create can be waiting for them."""
    limit = (time.time() if now is None else now) - MIN_AGE_SECONDS
    return [digest for digest, path in blobs.digests() if path.stat().st_ctime < limit]
