"""A package index on loopback for tests: PEP 691 pages, and wheels with ranges and faults made on purpose."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


def make_wheel(members: dict[str, bytes]) -> bytes:
    """A zip archive with these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


class PackageIndex:
    """Serves one wheel a package. `cut_after` ends the first so many answers early; `ignore_ranges` answers 200."""

    def __init__(self) -> None:
        self.url = ""
        self.wheels: dict[str, bytes] = {}
        self.claimed: dict[str, str] = {}
        self.cut_after: list[int] = []
        self.ignore_ranges = False
        self.statuses: list[int] = []
        self.requests: list[str] = []
        self.num_sent = 0

    def add(self, package: str, wheel: bytes, version: str = "1.0", claimed_sha256: str | None = None) -> str:
        """Offer a wheel and return its file name."""
        name = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
        self.wheels[name] = wheel
        self.claimed[name] = claimed_sha256 or hashlib.sha256(wheel).hexdigest()
        return name

    async def page(self, request: web.Request) -> web.Response:
        package = request.match_info["package"].replace("-", "_")
        files = [
            {
                "filename": name,
                "url": f"../../files/{name}",
                "size": len(data),
                "hashes": {"sha256": self.claimed[name]},
            }
            for name, data in self.wheels.items()
            if name.startswith(f"{package}-")
        ]
        if not files:
            raise web.HTTPNotFound
        return web.json_response({"meta": {"api-version": "1.1"}, "name": package, "files": files})

    async def file(self, request: web.Request) -> web.StreamResponse:
        data = self.wheels[request.match_info["name"]]
        wanted = request.headers.get("Range", "")
        self.requests.append(wanted)
        if self.statuses:
            return web.Response(status=self.statuses.pop(0))
        start = 0 if self.ignore_ranges or not wanted else int(wanted.removeprefix("bytes=").split("-")[0])
        body = data[start:]
        status = 206 if wanted and not self.ignore_ranges else 200
        headers = {"Content-Length": str(len(body))}
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        cut = self.cut_after.pop(0) if self.cut_after else len(body)
        await response.write(body[:cut])
        self.num_sent += min(cut, len(body))
        if cut < len(body):
            assert request.transport is not None
            request.transport.close()
        return response


@asynccontextmanager
async def serve_package_index() -> AsyncIterator[PackageIndex]:
    """A running index."""
    index = PackageIndex()
    app = web.Application()
    app.router.add_get("/simple/{package}/", index.page)
    app.router.add_get("/files/{name}", index.file)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    index.url = f"http://127.0.0.1:{runner.addresses[0][1]}/simple"
    try:
        yield index
    finally:
        await runner.cleanup()
