"""Warnings about a request that are known before its answer: in the Corral-Warning header, and in the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from aiohttp import web

from ..core.errors import InvalidRequest
from .dialects.bodies import B, parse_json, read_body, unknown_fields

log = logging.getLogger(__name__)

HEADER = "Corral-Warning"
STRICT_HEADER = "Corral-Strict"
_MAX_HEADER_CHARS = 1000
_WARNINGS: web.RequestKey[str] = web.RequestKey("warnings", str)


def wants_strictness(request: web.Request) -> bool:
    """Whether the client wants an error for what would otherwise be a warning."""
    return request.headers.get(STRICT_HEADER, "0").strip().lower() not in ("", "0", "false", "no")


def note_warnings(request: web.Request, warnings: Sequence[str]) -> None:
    """Log warnings, and have them in the header of the answer."""
    if warnings:
        log.info("%s %s: %s", request.method, request.path, "; ".join(warnings))
        printable = "; ".join(warnings).encode("ascii", "replace").decode()
        request[_WARNINGS] = "".join(char if char.isprintable() else " " for char in printable)[:_MAX_HEADER_CHARS]


async def add_warnings(request: web.Request, response: web.StreamResponse) -> None:
    """Put the header on an answer just before it starts."""
    if _WARNINGS in request:
        response.headers[HEADER] = request[_WARNINGS]


async def read_request(request: web.Request, kind: type[B]) -> B:
    """The body of a request that is not inference. Fields that nobody knows are noted. Errors: InvalidRequest."""
    value = parse_json(await request.read())
    body = read_body(value, kind)
    unknown = unknown_fields(value, kind)
    if unknown and (wants_strictness(request) or getattr(body, "strict", None)):
        raise InvalidRequest("; ".join(unknown))
    note_warnings(request, unknown)
    return body
