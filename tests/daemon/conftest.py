"""Fixtures of the daemon's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from daemons import RunningDaemon, run_fake_daemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[RunningDaemon]:
    """A daemon with the fake engine."""
    async with run_fake_daemon(tmp_path) as daemon:
        yield daemon
