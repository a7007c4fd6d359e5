"""Handlers that bring bytes in: blobs, create and pull."""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePosixPath

from aiohttp import web

from ..core.errors import BlobNotFound, Forbidden, InvalidDigest, InvalidRequest, SourceFailed
from ..core.names import ModelName, request_name
from ..core.progress import Progress, Report
from ..modelfile.create import CreateSpec, Creator
from ..modelfile.model import Model
from ..registry.blobs import CHUNK_BYTES, BlobWriter
from ..registry.digests import parse_digest
from ..registry.pull import fetch_file, link_file
from ..registry.sources.source import find_source, split_reference
from .bodies import CreateBody, LinkBody, PullBody
from .jobs import Job
from .notices import read_request
from .origins import is_local
from .services import SERVICES, Services
from .streaming import send_progress


async def head_blob(request: web.Request) -> web.Response:
    """Whether a blob is here."""
    digest = parse_digest(request.match_info["digest"])
    if not await asyncio.to_thread(request.app[SERVICES].store.blobs.has, digest):
        raise BlobNotFound(f"blob {digest} is not in the store")
    return web.Response()


async def upload_blob(request: web.Request) -> web.Response:
    """Take a blob in. 201 when it is new, 200 when it was known; the body is not read then."""
    store = request.app[SERVICES].store
    digest = parse_digest(request.match_info["digest"])
    if await asyncio.to_thread(store.blobs.has, digest):
        return web.Response()
    with store.blobs.writer() as writer:
        await _receive(request, writer)
        await asyncio.to_thread(writer.commit, digest)
    return web.Response(status=201)


async def link_blob(request: web.Request) -> web.StreamResponse:
    """Take a file of this machine in by its path: over the Unix socket only, since TCP clients may be anyone."""
    if not is_local(request):
        raise Forbidden("files are taken by path over the Unix socket only: upload the file instead")
    path = Path((await read_request(request, LinkBody)).path or "")
    if not path.is_absolute() or not path.is_file():
        raise InvalidRequest(f"path: no such file: {path.name}")
    store = request.app[SERVICES].store

    async def work(report: Report) -> None:
        digest = await asyncio.to_thread(link_file, store, path, report)
        report(Progress("success", digest))

    return await send_progress(request, Job(work).follow(), stream=True)


async def create(request: web.Request) -> web.StreamResponse:
    """Make a model."""
    services = request.app[SERVICES]
    body = await read_request(request, CreateBody)
    base_text = (body.base or "").strip()
    spec = _read_spec(services, body)
    if not base_text and not spec.files:
        raise InvalidRequest("neither 'from' or 'files' was specified")
    scheme, rest = split_reference(base_text)
    if scheme == "file":
        raise InvalidRequest("from: send a file to /api/blobs and name it in `files`")
    base = await asyncio.to_thread(_find_base, services, base_text) if base_text and not scheme else None

    async def work(report: Report) -> None:
        found = base
        if scheme:
            pulled = await _pull(services, scheme, rest, None, report)
            found = await asyncio.to_thread(_find_base, services, pulled)
        creator = Creator(services.store, services.resolver, report)
        warnings = await asyncio.to_thread(creator.create, spec, found)
        report(Progress("success", warnings=tuple(warnings)))

    return await send_progress(request, Job(work).follow(), body.stream is not False)


async def pull(request: web.Request) -> web.StreamResponse:
    """Get a model from a source. Requests for the same one share one transfer."""
    services = request.app[SERVICES]
    body = await read_request(request, PullBody)
    reference = (body.model or body.name or "").strip()
    scheme, rest = split_reference(reference)
    if scheme in ("", "http", "https"):
        request_name(reference)
    if scheme == "file" and not is_local(request):
        raise Forbidden("files are taken by path over the Unix socket only: upload the file and create from it")
    install_as = request_name(body.install_as) if body.install_as else None

    async def work(report: Report) -> None:
        installed = await _pull(services, scheme, rest, install_as, report)
        report(Progress("success", model=installed))

    key = f"pull {reference} {install_as.key if install_as else ''}"
    return await send_progress(request, services.jobs.join(key, work).follow(), body.stream is not False)


async def _pull(services: Services, scheme: str, rest: str, install_as: ModelName | None, report: Report) -> str:
    """Bring a model in and install it; returns the name that it is installed under."""
    report(Progress("pulling manifest"))
    config = {"package_index": services.settings.package_index}
    source = find_source(scheme, services.http, config)
    remote = await source.resolve(rest)
    files: dict[str, str] = {}
    for file in remote.files:
        files |= await fetch_file(services.http, services.store, file, report)
    weights = {name: digest for name, digest in files.items() if name.endswith(".gguf")}
    if len(weights) > 1:
        raise SourceFailed(f"it holds several GGUF files; name one, as in …#{sorted(weights)[0]}")
    spec = CreateSpec(install_as or request_name(remote.name), files)
    await asyncio.to_thread(Creator(services.store, services.resolver, report).create, spec, None)
    return spec.name.short


def _read_spec(services: Services, body: CreateBody) -> CreateSpec:
    licenses = [body.license] if isinstance(body.license, str) else body.license
    extras = {"renderer": body.renderer, "parser": body.parser, "requires": body.requires}
    return CreateSpec(
        name=request_name(body.shown),
        files=_checked_files(services, body.files, "files"),
        adapters=_checked_files(services, body.adapters, "adapters"),
        template=body.template,
        system=body.system,
        licenses=tuple(licenses or ()),
        parameters=body.parameters or {},
        messages=body.messages,
        quantize=body.quantize or body.quantization or "",
        extras={name: value for name, value in extras.items() if value},
    )


def _checked_files(services: Services, files: dict[str, str] | None, name: str) -> dict[str, str]:
    """File names and digests, checked before any work is done, so that a bad one is an ordinary 400."""
    checked: dict[str, str] = {}
    for file_name, text in (files or {}).items():
        path = PurePosixPath(file_name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or not file_name.strip("./"):
            raise InvalidRequest(f"{name}: {file_name[:80]!r}: file path must be relative, without ..")
        try:
            digest = parse_digest(text)
        except InvalidDigest as error:
            raise InvalidDigest(f"{name}: {file_name[:80]}: {error.message}") from None
        if not services.store.blobs.has(digest):
            raise InvalidRequest(f"{name}: {file_name[:80]}: blob {digest} is not here: send it to /api/blobs first")
        checked[file_name] = digest
    return checked


def _find_base(services: Services, shown: str) -> Model:
    stored = services.store.get(request_name(shown), shown)
    return services.resolver.resolve(stored)


async def _receive(request: web.Request, writer: BlobWriter) -> None:
    buffer = bytearray()
    async for data in request.content.iter_any():
        buffer += data
        if len(buffer) >= CHUNK_BYTES:
            await asyncio.to_thread(writer.write, bytes(buffer))
            buffer.clear()
    await asyncio.to_thread(writer.write, bytes(buffer))
