"""The OpenAPI page of the daemon, made from the routes and the types of their bodies. `python -m corral.daemon.openapi`
prints it as YAML: docs/openapi.yaml."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from .. import __version__

_PARAMETER = re.compile(r"\{(\w+)(?::[^}]+)?\}")
_REF = "#/components/schemas/{name}"
_ERROR = {"description": "What was wrong, in the form of the dialect", "content": {"application/json": {"schema": {}}}}
_ANSWER = {"description": "The answer, in one piece or as a stream"}


class Operation(NamedTuple):
    """One method of one path. `body` None means that it takes none, or bytes."""

    method: str
    path: str
    tag: str
    summary: str
    body: type[msgspec.Struct] | None = None


def describe_api(operations: Iterable[Operation]) -> dict[str, Any]:
    """An OpenAPI 3.1 document as plain values."""
    known = list(operations)
    bodies = list(dict.fromkeys(operation.body for operation in known if operation.body is not None))
    schemas, components = msgspec.json.schema_components(bodies, ref_template=_REF)
    refs = dict(zip(bodies, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in known:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _describe(operation, path, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Corral",
            "version": __version__,
            "description": "Corral's HTTP API: the forms of Ollama, OpenAI, Anthropic, TGI and llama.cpp.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:11434"}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(components.items()))},
    }


async def serve_page(request: web.Request) -> web.Response:
    """The OpenAPI page of this daemon, as JSON."""
    from .app import list_operations  # here: app.py has the table of routes, this handler among them

    del request
    body = msgspec.json.encode(describe_api(list_operations()))
    return web.Response(body=body, content_type="application/json")


def _describe(operation: Operation, path: str, refs: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{operation.method.lower()}{path}").strip("_"),
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": {"2XX": _ANSWER, "4XX": _ERROR, "5XX": _ERROR},
    }
    names = re.findall(r"\{(\w+)\}", path)
    if names:
        described["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if operation.body is not None:
        content = {"application/json": {"schema": refs[operation.body]}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def main() -> None:
    """Print the page as YAML."""
    import yaml

    from .app import list_operations

    # Through JSON and back, so that what appears twice is written twice: YAML's references are hard to read.
    page = msgspec.json.decode(msgspec.json.encode(describe_api(list_operations())))
    yaml.safe_dump(page, sys.stdout, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    main()
