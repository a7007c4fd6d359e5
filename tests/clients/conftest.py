"""A daemon for official clients. Its models: `fake`, and `caller`, whose template knows tools and thinking, so that a
scripted answer is read as one that a real model would give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from callers import TEMPLATE
from daemons import RunningDaemon
from threads import serve_in_thread


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the daemon."""
    with serve_in_thread(tmp_path_factory.mktemp("clients"), _create_caller) as address:
        yield address


async def _create_caller(daemon: RunningDaemon) -> None:
    body = {"model": "caller", "from": "fake", "template": TEMPLATE, "stream": False}
    status, answer = await daemon.post("/api/create", body)
    assert status == 200, answer
