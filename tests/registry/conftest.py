"""Fixtures of the registry's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from corral.registry.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open store in an empty folder."""
    store = Store(tmp_path / "models")
    store.open()
    yield store
    store.close()
