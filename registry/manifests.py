"""Manifests: which layers a model is made of, in Ollama's JSON, one file a name, looked up without regard to case."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..core.errors import InvalidName, StoreFailed
from ..core.names import ModelName, parse_name
from .digests import digest_bytes, parse_digest
from .disk import disk_errors, write_atomically
from .layout import Layout

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
MODEL_TYPE = "application/vnd.ollama.image.model"
PROJECTOR_TYPE = "application/vnd.ollama.image.projector"
ADAPTER_TYPE = "application/vnd.ollama.image.adapter"
TEMPLATE_TYPE = "application/vnd.ollama.image.template"
SYSTEM_TYPE = "application/vnd.ollama.image.system"
PARAMS_TYPE = "application/vnd.ollama.image.params"
MESSAGES_TYPE = "application/vnd.ollama.image.messages"
LICENSE_TYPE = "application/vnd.ollama.image.license"

# A manifest names a handful of layers; one of megabytes is not a manifest.
MAX_MANIFEST_BYTES = 4 << 20

log = logging.getLogger(__name__)


class Descriptor(
    msgspec.Struct, frozen=True, omit_defaults=True, rename={"media_type": "mediaType", "from_model": "from"}
):
    """A blob and what it is. `from_model` is the short name of the model that a layer of weights was taken from."""

    media_type: str
    digest: str
    size: int
    from_model: str = ""


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """A config and layers, in order."""

    schema_version: int
    media_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...] = ()

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """Config and layers."""
        return (self.config, *self.layers)

    @property
    def size_bytes(self) -> int:
        """Sum over config and layers."""
        return sum(blob.size for blob in self.blobs)

    def layer(self, media_type: str) -> Descriptor | None:
        """The last layer of a type, which is the one in force."""
        return next((layer for layer in reversed(self.layers) if layer.media_type == media_type), None)


class StoredModel(msgspec.Struct, frozen=True):
    """An installed model. `digest` is of the manifest's bytes, `modified_ns` Unix time of the manifest file."""

    name: ModelName
    manifest: Manifest
    digest: str
    modified_ns: int


class ManifestStore:
    """The manifests folder."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def find(self, name: ModelName) -> StoredModel | None:
        """The installed model of a name in any spelling, with the spelling it was installed under."""
        for path in self._spellings(name):
            return self._read(path)
        return None

    def list_models(self, strict: bool = False) -> Iterator[StoredModel]:
        """Every model. Damaged manifests are logged and passed over, or with `strict` raise StoreFailed."""
        for path in sorted(self._layout.manifests.glob("*/*/*/*")):
            if not path.is_file():
                continue
            try:
                yield self._read(path)
            except (StoreFailed, InvalidName) as error:
                shown = path.relative_to(self._layout.manifests)
                if strict:
                    raise StoreFailed(f"manifest {shown} is damaged: remove it or pull its model again") from error
                log.warning("passing over a damaged manifest: %s", shown)

    def write(self, name: ModelName, manifest: Manifest) -> None:
        """Install a model under a name, replacing any whose name differs only in case."""
        with disk_errors("writing the manifest"):
            existing = next(iter(self._spellings(name)), None)
            path = existing or self._layout.manifest(name)
            write_atomically(path, msgspec.json.encode(manifest), self._layout.tmp)

    def delete(self, name: ModelName) -> bool:
        """Remove a name in any spelling, and folders that are empty then. False when there was none."""
        found = False
        with disk_errors("removing the manifest"):
            for path in list(self._spellings(name)):
                path.unlink(missing_ok=True)
                found = True
                self._prune(path.parent)
        return found

    def _spellings(self, name: ModelName) -> Iterator[Path]:
        exact = self._layout.manifest(name)
        if exact.is_file():
            yield exact
        folders = [self._layout.manifests]
        for part in (name.host, name.namespace, name.model):
            folders = [found for folder in folders for found in _entries(folder, part) if found.is_dir()]
        for folder in folders:
            for path in _entries(folder, name.tag):
                if path.is_file() and path != exact:
                    yield path

    def _read(self, path: Path) -> StoredModel:
        with disk_errors("reading a manifest"):
            data = path.read_bytes()[: MAX_MANIFEST_BYTES + 1]
            modified_ns = path.stat().st_mtime_ns
        host, namespace, model, tag = path.parts[-4:]
        name = parse_name(f"{host}/{namespace}/{model}:{tag}")
        return StoredModel(name, decode_manifest(data), digest_bytes(data), modified_ns)

    def _prune(self, folder: Path) -> None:
        while folder != self._layout.manifests and not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
            folder = folder.parent


def decode_manifest(data: bytes) -> Manifest:
    """Read and check a manifest. Errors: StoreFailed when it is no manifest or names a malformed digest."""
    if len(data) > MAX_MANIFEST_BYTES:
        raise StoreFailed(f"the manifest is larger than {MAX_MANIFEST_BYTES} bytes")
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
        for blob in manifest.blobs:
            parse_digest(blob.digest)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreFailed(f"the manifest is damaged: {error}; pull or create the model again") from None
    return manifest


def _entries(folder: Path, name: str) -> Iterator[Path]:
    wanted = name.lower()
    return (path for path in sorted(folder.iterdir()) if path.name.lower() == wanted)
