"""Making a model: layers taken from a base or from uploaded files, texts and parameters on top, then one manifest."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec

from ..core.errors import InvalidGGUF, InvalidRequest, InvalidTemplate, Unsupported
from ..core.names import ModelName
from ..core.options import OPTIONS, RETIRED, check_options, nearest
from ..core.progress import Progress, Report
from ..registry import manifests
from ..registry.manifests import Descriptor, Manifest
from ..registry.store import Store
from .ggml import format_parameter_count
from .gguf import GGUF
from .model import Model, ModelResolver

ROLES = ("system", "user", "assistant")
_SHARD_COUNT = "split.count"


class CreateSpec(msgspec.Struct, frozen=True):
    """What to make. None means: as in the base; an empty text removes the base's. `files` is {file name: digest}."""

    name: ModelName
    files: dict[str, str] = {}
    adapters: dict[str, str] = {}
    template: str | None = None
    system: str | None = None
    licenses: tuple[str, ...] = ()
    parameters: dict[str, Any] = {}
    messages: list[dict[str, Any]] | None = None
    quantize: str = ""
    extras: dict[str, str] = {}


class Creator:
    """Runs one create. `create` blocks on the disk."""

    def __init__(self, store: Store, resolver: ModelResolver, report: Report) -> None:
        self._store = store
        self._resolver = resolver
        self._report = report

    def create(self, spec: CreateSpec, base: Model | None) -> list[str]:
        """Install a model. Its old version stays until the new one is whole.

        Returns warnings.
        Errors: InvalidRequest and its kinds for what cannot be used; StoreFailed when the disk refuses.
        """
        parameters, warnings = check_parameters(spec.parameters)
        warnings += check_template(spec.template)
        check_messages(spec.messages)
        with self._store.pinned([*spec.files.values(), *spec.adapters.values()]):
            weights, config = self._weights(spec, base)
            if base is None and spec.template is None:
                spec, parameters = self._with_known_template(spec, parameters, weights)
            with self._store.changing():
                layers = [*weights, *self._texts(spec, base, parameters)]
                manifest = self._manifest(layers, config)
                self._report(Progress("writing manifest"))
                self._store.put(spec.name, manifest)
        return warnings

    def _weights(self, spec: CreateSpec, base: Model | None) -> tuple[list[Descriptor], dict[str, Any]]:
        layers: list[Descriptor] = []
        config: dict[str, Any] = {}
        if base is not None:
            kept = (manifests.MODEL_TYPE, manifests.PROJECTOR_TYPE, manifests.ADAPTER_TYPE)
            layers = [_descend(layer, base) for layer in base.stored.manifest.layers if layer.media_type in kept]
            config = dict(base.config)
        for file_name, digest in spec.files.items():
            gguf = self._parse(file_name, digest)
            media_type = _media_type(gguf)
            layers.append(self._layer(media_type, digest))
            if media_type == manifests.MODEL_TYPE:
                config.update(_config(gguf))
        for file_name, digest in spec.adapters.items():
            if _media_type(self._parse(file_name, digest)) != manifests.ADAPTER_TYPE:
                raise InvalidRequest(f"adapters: {file_name} is no LoRA adapter: its general.type is not adapter")
            layers.append(self._layer(manifests.ADAPTER_TYPE, digest))
        if spec.quantize:
            raise Unsupported(
                "this version cannot quantize: leave `quantize` out, or quantize the GGUF file beforehand"
            )
        if sum(layer.media_type == manifests.MODEL_TYPE for layer in layers) != 1:
            raise InvalidRequest("a model needs exactly one GGUF file of weights: name one in `files`, or use `from`")
        self._check_adapters(layers)
        config.update(spec.extras)
        return layers, config

    def _check_adapters(self, layers: list[Descriptor]) -> None:
        """Errors: InvalidRequest for an adapter that was made for another kind of model."""
        headers = {layer.digest: self._resolver.header(layer.digest) for layer in layers if _is_gguf(layer)}
        (base,) = (headers[layer.digest].architecture for layer in layers if _is_weights(layer))
        for layer in layers:
            if layer.media_type == manifests.ADAPTER_TYPE and headers[layer.digest].architecture != base:
                made_for = headers[layer.digest].architecture
                raise InvalidRequest(f"adapters: an adapter for {made_for} models does not fit weights of {base}")

    def _parse(self, file_name: str, digest: str) -> GGUF:
        self._report(Progress("parsing GGUF"))
        if PurePosixPath(file_name).suffix == ".safetensors":
            raise Unsupported(f"files: {file_name}: this version makes models from GGUF files only, not safetensors")
        try:
            gguf = self._resolver.header(digest)
        except InvalidGGUF as error:
            raise InvalidGGUF(f"files: {file_name}: {error.message}") from None
        num_shards = gguf.metadata.get(_SHARD_COUNT)
        if isinstance(num_shards, int) and num_shards > 1:
            raise Unsupported(f"files: {file_name} is one of several shards: this version takes single GGUF files only")
        return gguf

    def _with_known_template(
        self, spec: CreateSpec, parameters: dict[str, Any], layers: list[Descriptor]
    ) -> tuple[CreateSpec, dict[str, Any]]:
        """What was asked for, with the Go template that means the same as the Jinja one in the weights, if any."""
        from .autodetect import detect_template  # here: it loads what renders templates

        digest = next(layer.digest for layer in layers if _is_weights(layer))
        known = detect_template(self._resolver.header(digest), self._store.blobs.path(digest))
        if known is None:
            return spec, parameters
        self._report(Progress(f"using autodetected template {known.name}"))
        stop = {"stop": list(known.stop)} if known.stop else {}
        return msgspec.structs.replace(spec, template=known.source), stop | parameters

    def _texts(self, spec: CreateSpec, base: Model | None, parameters: dict[str, Any]) -> list[Descriptor]:
        template = _chosen(spec.template, base.template if base else None)
        system = _chosen(spec.system, base.system if base else None)
        licenses = [*(base.licenses if base else ()), *spec.licenses]
        merged = {**(base.parameters if base else {}), **parameters}
        messages = spec.messages
        if messages is None and base is not None:
            messages = [{"role": message.role, "content": message.text} for message in base.messages]
        layers = []
        if template:
            layers.append(self._new_layer(manifests.TEMPLATE_TYPE, template.encode()))
        if system is not None:
            layers.append(self._new_layer(manifests.SYSTEM_TYPE, system.encode()))
        if merged:
            layers.append(self._new_layer(manifests.PARAMS_TYPE, msgspec.json.encode(merged)))
        if messages:
            layers.append(self._new_layer(manifests.MESSAGES_TYPE, msgspec.json.encode(messages)))
        # A licence that the base has already is not added again, so that export and create give the same model.
        layers += [self._new_layer(manifests.LICENSE_TYPE, text.encode()) for text in dict.fromkeys(licenses)]
        return layers

    def _new_layer(self, media_type: str, data: bytes) -> Descriptor:
        known = self._store.blobs.add_bytes(data)
        self._report(Progress(f"creating new layer {known}"))
        return Descriptor(media_type, known, len(data))

    def _layer(self, media_type: str, digest: str) -> Descriptor:
        self._report(Progress(f"using existing layer {digest}"))
        return Descriptor(media_type, digest, self._store.blobs.path(digest).stat().st_size)

    def _manifest(self, layers: list[Descriptor], config: dict[str, Any]) -> Manifest:
        config["rootfs"] = {"type": "layers", "diff_ids": [layer.digest for layer in layers]}
        data = msgspec.json.encode(config, order="sorted")
        descriptor = Descriptor(manifests.CONFIG_TYPE, self._store.blobs.add_bytes(data), len(data))
        return Manifest(2, manifests.MANIFEST_TYPE, descriptor, tuple(layers))


def check_parameters(parameters: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Typed parameters, and warnings for retired ones. Errors: InvalidRequest for unknown names and wrong types."""
    unknown = [name for name in parameters if name not in OPTIONS and name not in RETIRED]
    if unknown:
        near = nearest(unknown[0], list(OPTIONS))
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidRequest(f"unknown parameter '{unknown[0][:60]}'{hint}")
    return check_options(parameters)


def check_template(source: str | None) -> list[str]:
    """Warnings for names in a TEMPLATE that no request fills. Errors: InvalidTemplate with line and column."""
    if not source:
        return []
    from .gotemplate.prompt import GoPrompt  # here: few models bring a template

    try:
        unknown = GoPrompt(source).unknown_names()
    except InvalidTemplate as error:
        raise InvalidTemplate(f"template error: {error.message.removeprefix('template: ')}") from None
    return [f"TEMPLATE names .{name}, which no request fills: it prints nothing" for name in unknown]


def check_messages(messages: list[dict[str, Any]] | None) -> None:
    """Errors: InvalidRequest when a message has no known role or its content is not text."""
    for index, message in enumerate(messages or []):
        if message.get("role") not in ROLES:
            raise InvalidRequest(f"messages[{index}].role must be one of {', '.join(ROLES)}")
        if not isinstance(message.get("content", ""), str):
            raise InvalidRequest(f"messages[{index}].content must be a string")


def _descend(layer: Descriptor, base: Model) -> Descriptor:
    return msgspec.structs.replace(layer, from_model=base.name.short) if _is_weights(layer) else layer


def _is_gguf(layer: Descriptor) -> bool:
    return layer.media_type in (manifests.MODEL_TYPE, manifests.PROJECTOR_TYPE, manifests.ADAPTER_TYPE)


def _is_weights(layer: Descriptor) -> bool:
    return layer.media_type == manifests.MODEL_TYPE


def _chosen(given: str | None, inherited: str | None) -> str | None:
    return inherited if given is None else given


def _media_type(gguf: GGUF) -> str:
    kind = gguf.metadata.get("general.type")
    if kind == "adapter":
        return manifests.ADAPTER_TYPE
    return manifests.PROJECTOR_TYPE if gguf.architecture == "clip" or kind == "mmproj" else manifests.MODEL_TYPE


def _config(gguf: GGUF) -> dict[str, Any]:
    return {
        "model_format": "gguf",
        "model_family": gguf.architecture,
        "model_families": [gguf.architecture],
        "model_type": format_parameter_count(gguf.parameter_count),
        "file_type": gguf.file_type,
        "architecture": "amd64",
        "os": "linux",
    }
