"""The store: the one owner of manifests and blobs on disk. Everything that changes them goes through here."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..core.errors import ModelNotFound, StoreFailed
from ..core.names import ModelName
from . import gc
from .blobs import BlobStore
from .disk import disk_errors
from .layout import Layout
from .manifests import Manifest, ManifestStore, StoredModel

log = logging.getLogger(__name__)


class Store:
    """A models folder. Methods block on the disk; call them from a thread where a loop runs."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.blobs = BlobStore(self.layout)
        self._manifests = ManifestStore(self.layout)
        self._lock = threading.RLock()
        self._pins: Counter[str] = Counter()
        self._lock_file: int | None = None

    def open(self) -> None:
        """Make the folders, take the lock, and clear away what a crash left.

        Errors: StoreFailed when the folder cannot be used or another daemon owns it.
        """
        with disk_errors("opening the folder of models"):
            for folder in self.layout.folders:
                folder.mkdir(parents=True, exist_ok=True)
            self._lock_file = os.open(self.layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise StoreFailed(
                "another Corral daemon uses this folder of models: stop it, or set CORRAL_MODELS to another folder"
            ) from None
        with disk_errors("clearing the folder of models"):
            shutil.rmtree(self.layout.tmp)
            self.layout.tmp.mkdir()
            with self._lock:
                self._sweep(gc.stale(self.blobs))

    def close(self) -> None:
        """Give the lock back."""
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def find(self, name: ModelName) -> StoredModel | None:
        """An installed model, or None. The name's case does not matter."""
        return self._manifests.find(name)

    def get(self, name: ModelName, shown: str) -> StoredModel:
        """An installed model. Errors: ModelNotFound, quoting `shown`, the name as the caller wrote it."""
        model = self.find(name)
        if model is None:
            raise ModelNotFound(f"model '{shown}' not found")
        return model

    def list_models(self) -> list[StoredModel]:
        """Installed models, newest first by whole seconds, then by name."""
        models = list(self._manifests.list_models())
        return sorted(models, key=lambda model: (-(model.modified_ns // 1_000_000_000), model.name.key))

    def put(self, name: ModelName, manifest: Manifest) -> list[str]:
        """Install a model and remove layers of the one it replaces that nobody needs now.

        Returns the digests removed. Errors: StoreFailed when a layer is not in the store.
        """
        with self._lock:
            missing = [blob.digest for blob in manifest.blobs if not self.blobs.has(blob.digest)]
            if missing:
                raise StoreFailed(f"layer {missing[0]} is not in the store")
            replaced = self._find_readable(name)
            self._manifests.write(name, manifest)
            return self._sweep(blob.digest for blob in replaced.manifest.blobs) if replaced else []

    def copy(self, source: StoredModel, destination: ModelName) -> None:
        """Install a model under a second name."""
        with self._lock:
            if destination.key != source.name.key:
                self.put(destination, source.manifest)

    def delete(self, name: ModelName, shown: str) -> None:
        """Remove a name, also one whose manifest is damaged, and the layers that no other model uses.

        Errors: ModelNotFound, quoting `shown`.
        """
        with self._lock:
            model = self._find_readable(name)
            if not self._manifests.delete(name):
                raise ModelNotFound(f"model '{shown}' not found")
            if model is not None:
                self._sweep(blob.digest for blob in model.manifest.blobs)

    @contextlib.contextmanager
    def pinned(self, digests: Iterable[str]) -> Iterator[None]:
        """Keep blobs from being swept while a create or pull that needs them is under way."""
        held = list(digests)
        with self._lock:
            self._pins.update(held)
        try:
            yield
        finally:
            with self._lock:
                self._pins.subtract(held)
                self._pins += Counter()

    def _find_readable(self, name: ModelName) -> StoredModel | None:
        try:
            return self.find(name)
        except StoreFailed as error:
            log.warning("%s: %s", name.short, error)
            return None

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold off every other change, so that layers written now are still there when `put` names them."""
        with self._lock:
            yield

    def _sweep(self, candidates: Iterable[str]) -> list[str]:
        try:
            keep = gc.mark(self._manifests) | set(self._pins)
        except StoreFailed as error:
            log.warning("nothing is cleared away: %s", error)
            return []
        return gc.sweep(self.blobs, candidates, keep)
