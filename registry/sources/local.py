"""Source `file`: a GGUF file on this machine, linked into the store rather than copied where the disk allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import aiohttp

from ...core.errors import InvalidRequest
from .source import RemoteFile, RemoteModel, model_name


class LocalSource:
    """Resolves absolute paths and file:///… references."""

    def __init__(self, http: aiohttp.ClientSession, config: Mapping[str, str]) -> None:
        del http, config

    async def resolve(self, reference: str) -> RemoteModel:
        """Describe a file. The model is named after it, without the ending."""
        path = Path(unquote(reference))
        if not path.is_absolute():
            raise InvalidRequest("a file reference needs an absolute path, as in file:///models/tiny.gguf")
        if not path.is_file():
            raise InvalidRequest(f"no such file: {path.name}")
        file = RemoteFile(path.name, path.stat().st_size, path=path)
        return RemoteModel(model_name(path.stem), (file,))
