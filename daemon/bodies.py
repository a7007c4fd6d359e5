"""The bodies of the endpoints that manage models, field by field (contract sections 7 to 9)."""

from __future__ import annotations

from typing import Any

import msgspec

from .dialects.bodies import Body
from .dialects.fields import model_name


class ModelBody(Body, frozen=True):
    """A body that names a model; `name` is an old spelling that clients still send."""

    model: str | None = None
    name: str | None = None

    @property
    def shown(self) -> str:
        """The name as the client wrote it. Errors: InvalidRequest where there is none."""
        return model_name(self.model, self.name)


class ShowBody(ModelBody, frozen=True):
    """POST /api/show."""

    verbose: bool | None = None
    system: str | None = None
    options: dict[str, Any] | None = None


class DeleteBody(ModelBody, frozen=True):
    """DELETE /api/delete."""


class CopyBody(Body, frozen=True):
    """POST /api/copy."""

    source: str | None = None
    destination: str | None = None


class PullBody(ModelBody, frozen=True):
    """POST /api/pull. `as` is the name to install under."""

    insecure: bool | None = None
    stream: bool | None = None
    install_as: str | None = msgspec.field(name="as", default=None)
    username: str | None = None
    password: str | None = None


class CreateBody(ModelBody, frozen=True):
    """POST /api/create."""

    base: str | None = msgspec.field(name="from", default=None)
    files: dict[str, str] | None = None
    adapters: dict[str, str] | None = None
    template: str | None = None
    license: str | list[str] | None = None
    system: str | None = None
    parameters: dict[str, Any] | None = None
    messages: list[dict[str, Any]] | None = None
    quantize: str | None = None
    quantization: str | None = None
    renderer: str | None = None
    parser: str | None = None
    requires: str | None = None
    info: dict[str, Any] | None = None
    stream: bool | None = None


class LinkBody(Body, frozen=True):
    """POST /api/blobs: a file of this machine, over the Unix socket."""

    path: str | None = None
