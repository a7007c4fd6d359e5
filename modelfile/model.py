"""A model: a manifest resolved to files, texts, parameters and capabilities. Read-only, and cheap to make again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import StoreFailed
from ..core.names import ModelName
from ..core.types import Message, text_message
from ..registry import manifests
from ..registry.manifests import StoredModel
from ..registry.store import Store
from .capabilities import find_capabilities
from .ggml import format_parameter_count
from .gguf import GGUF, read_gguf

_CACHED_HEADERS = 64


class Details(msgspec.Struct, frozen=True):
    """The `details` object of answers."""

    parent_model: str
    format: str
    family: str
    families: tuple[str, ...]
    parameter_size: str
    quantization_level: str


class Model(msgspec.Struct, frozen=True):
    """An installed model, everything that a request or an answer may need of it."""

    name: ModelName
    stored: StoredModel
    config: dict[str, Any]
    weights: str
    weights_path: Path
    gguf: GGUF
    adapters: tuple[Path, ...]
    projector: Path | None
    template: str | None
    system: str | None
    parameters: dict[str, Any]
    messages: tuple[Message, ...]
    licenses: tuple[str, ...]
    details: Details
    capabilities: tuple[str, ...]

    @property
    def context_length(self) -> int:
        """The window that the model was trained for, in tokens; 0 when the file does not say."""
        return self.gguf.context_length or 0


class ModelResolver:
    """Makes Models, and keeps the headers of GGUF files that it has read. Usable from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._headers: OrderedDict[str, GGUF] = OrderedDict()
        self._lock = threading.Lock()

    def resolve(self, stored: StoredModel) -> Model:
        """Everything about an installed model. Errors: StoreFailed when a layer is missing or damaged."""
        manifest = stored.manifest
        weights = manifest.layer(manifests.MODEL_TYPE)
        if weights is None:
            raise StoreFailed(f"model '{stored.name.short}' has no weights: create or pull it again")
        gguf = self.header(weights.digest)
        template = self._text(stored, manifests.TEMPLATE_TYPE)
        config = self._json(stored, manifest.config.digest)
        projector = manifest.layer(manifests.PROJECTOR_TYPE)
        return Model(
            name=stored.name,
            stored=stored,
            config=config,
            weights=weights.digest,
            weights_path=self._store.blobs.path(weights.digest),
            gguf=gguf,
            adapters=tuple(self._store.blobs.path(digest) for digest in self._digests(stored, manifests.ADAPTER_TYPE)),
            projector=self._store.blobs.path(projector.digest) if projector else None,
            template=template,
            system=self._text(stored, manifests.SYSTEM_TYPE),
            parameters=self._parameters(stored),
            messages=self._messages(stored),
            licenses=self._licenses(stored),
            details=_details(config, gguf, weights.from_model),
            capabilities=find_capabilities(gguf, template, projector is not None),
        )

    def header(self, digest: str) -> GGUF:
        """The header of a GGUF blob. Errors: InvalidGGUF, BlobNotFound."""
        with self._lock:
            if digest in self._headers:
                self._headers.move_to_end(digest)
                return self._headers[digest]
        gguf = read_gguf(self._store.blobs.path(digest))
        with self._lock:
            self._headers[digest] = gguf
            while len(self._headers) > _CACHED_HEADERS:
                self._headers.popitem(last=False)
        return gguf

    def _digests(self, stored: StoredModel, media_type: str) -> tuple[str, ...]:
        return tuple(layer.digest for layer in stored.manifest.layers if layer.media_type == media_type)

    def _text(self, stored: StoredModel, media_type: str) -> str | None:
        layer = stored.manifest.layer(media_type)
        return None if layer is None else self._store.blobs.read(layer.digest).decode("utf-8", "replace")

    def _licenses(self, stored: StoredModel) -> tuple[str, ...]:
        digests = self._digests(stored, manifests.LICENSE_TYPE)
        return tuple(self._store.blobs.read(digest).decode("utf-8", "replace") for digest in digests)

    def _parameters(self, stored: StoredModel) -> dict[str, Any]:
        layer = stored.manifest.layer(manifests.PARAMS_TYPE)
        return {} if layer is None else self._json(stored, layer.digest)

    def _messages(self, stored: StoredModel) -> tuple[Message, ...]:
        layer = stored.manifest.layer(manifests.MESSAGES_TYPE)
        if layer is None:
            return ()
        try:
            raw = msgspec.json.decode(self._store.blobs.read(layer.digest), type=list[dict[str, str]])
            return tuple(text_message(entry["role"], entry.get("content", "")) for entry in raw)
        except (msgspec.MsgspecError, KeyError):
            raise _damaged(stored) from None

    def _json(self, stored: StoredModel, digest: str) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self._store.blobs.read(digest), type=dict[str, Any])
        except msgspec.MsgspecError:
            raise _damaged(stored) from None


def _details(config: dict[str, Any], gguf: GGUF, parent: str) -> Details:
    family = str(config.get("model_family") or gguf.architecture)
    return Details(
        parent_model=parent,
        format=str(config.get("model_format") or "gguf"),
        family=family,
        families=tuple(config.get("model_families") or (family,)),
        parameter_size=str(config.get("model_type") or format_parameter_count(gguf.parameter_count)),
        quantization_level=str(config.get("file_type") or gguf.file_type),
    )


def _damaged(stored: StoredModel) -> StoreFailed:
    return StoreFailed(f"a layer of model '{stored.name.short}' is damaged: create or pull it again")
