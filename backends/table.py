"""The engines: name -> "module:Class", imported in the runner only, so the daemon never holds one."""

from __future__ import annotations

from importlib import import_module

from ..core.errors import InvalidRequest
from .protocol import EngineFactory

BACKENDS: dict[str, str] = {
    "fake": "corral.backends.fake:FakeEngine",
    "llamacpp": "corral.backends.llamacpp.engine:load_engine",
}


def find_engine(backend: str) -> EngineFactory:
    """The class of an engine. Errors: InvalidRequest for a name not in the table."""
    if backend not in BACKENDS:
        raise InvalidRequest(f"unknown backend {backend!r}; known are {', '.join(sorted(BACKENDS))}")
    module, _, attribute = BACKENDS[backend].partition(":")
    factory: EngineFactory = getattr(import_module(module), attribute)
    return factory
