"""What is ignored is told in a header, or is an error where the client is strict. Silence in streams is filled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from daemons import RunningDaemon, run_fake_daemon

BODY = {"model": "fake", "prompt": "say x", "stream": False}


async def post(daemon: RunningDaemon, path: str, body: dict[str, Any], **headers: str) -> tuple[int, str | None, Any]:
    async with daemon.http.post(daemon.url + path, json=body, headers=headers) as response:
        return response.status, response.headers.get("Corral-Warning"), await response.json()


@pytest.mark.parametrize(
    ("extra", "warning"),
    [
        ({"optoins": {}}, 'unknown field "optoins" was ignored; did you mean "options"?'),
        ({"options": {"temprature": 1}}, 'unknown option "temprature" was ignored; did you mean "temperature"?'),
        ({"options": {"tfs_z": 1}}, 'option "tfs_z" has no effect'),
    ],
)
async def test_what_is_ignored_is_in_a_header_and_strictness_refuses_it(
    daemon: RunningDaemon, extra: dict[str, Any], warning: str
) -> None:
    status, header, answer = await post(daemon, "/api/generate", BODY | extra)
    assert (status, header, answer["response"]) == (200, warning, "x")
    assert warning in answer["warnings"]
    for fields, headers in (({"strict": True}, {}), ({}, {"Corral-Strict": "1"})):
        status, _, answer = await post(daemon, "/api/generate", BODY | extra | fields, **headers)
        assert status == 400
        assert answer["error"] == warning


async def test_nothing_ignored_is_no_header(daemon: RunningDaemon) -> None:
    status, header, _ = await post(daemon, "/api/generate", BODY | {"strict": True}, **{"Corral-Strict": "true"})
    assert (status, header) == (200, None)


async def test_management_names_unknown_fields_too(daemon: RunningDaemon) -> None:
    status, header, _ = await post(daemon, "/api/show", {"model": "fake", "verbos": True})
    assert (status, header) == (200, 'unknown field "verbos" was ignored; did you mean "verbose"?')
    status, _, _ = await post(daemon, "/api/show", {"model": "fake", "verbos": True, "strict": True})
    assert status == 400


async def test_header_holds_printable_ascii_only(daemon: RunningDaemon) -> None:
    status, header, _ = await post(daemon, "/api/generate", BODY | {"naïve\r\nX-Evil: 1": 1})
    assert status == 200
    assert header is not None
    assert header.isascii()
    assert header.isprintable()


@pytest.mark.parametrize(
    ("path", "body", "ping"),
    [
        ("/api/generate", {"prompt": "hang"}, b'"response":""'),
        ("/api/chat", {"messages": [{"role": "user", "content": "hang"}]}, b'"content":""'),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hang"}]}, b": ping"),
    ],
)
async def test_stream_is_opened_and_kept_alive_while_nothing_comes(
    tmp_path: Path, path: str, body: dict[str, Any], ping: bytes
) -> None:
    async with run_fake_daemon(tmp_path, heartbeat=0.05) as daemon:
        data = {"model": "fake", "stream": True, **body}
        async with asyncio.timeout(20), daemon.http.post(daemon.url + path, json=data) as response:
            assert response.status == 200
            seen = [await response.content.readline() for _ in range(4)]
        assert all(line == b"\n" or ping in line for line in seen)
        assert any(ping in line for line in seen)


async def test_pings_do_not_change_the_answer(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, heartbeat=0.001) as daemon:
        _, lines = await daemon.post("/api/generate", {"model": "fake", "prompt": "count 30"})
        assert "".join(line["response"] for line in lines) == " ".join(str(number) for number in range(1, 31))
        assert [line["done"] for line in lines].count(True) == 1


async def test_fault_known_before_generation_keeps_its_status_with_heartbeats(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, heartbeat=15) as daemon:
        assert (await daemon.post("/api/generate", {"model": "absent", "prompt": "x"}))[0] == 404
        assert (await daemon.post("/api/generate", {"model": "fake", "prompt": "x", "think": True}))[0] == 400


async def test_error_after_the_first_ping_is_the_last_line(tmp_path: Path) -> None:
    async with run_fake_daemon(tmp_path, heartbeat=0.001) as daemon:
        async with daemon.http.post(f"{daemon.url}/api/generate", json={"model": "fake", "prompt": "die"}) as response:
            lines = [msgspec.json.decode(line) for line in (await response.read()).splitlines()]
        assert "error" in lines[-1]
        assert ["error" in line for line in lines].count(True) == 1
