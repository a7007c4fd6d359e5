"""Origins and hosts that may and may not talk to the daemon."""

from __future__ import annotations

import pytest
from corral.core.address import parse_address
from corral.daemon.origins import OriginRules, host_allowed, is_own_origin

LOOPBACK = parse_address("127.0.0.1")


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "https://localhost:3000",
        "http://127.0.0.1:1",
        "http://0.0.0.0",
        "app://x",
        "file://",
        "tauri://localhost",
    ],
)
def test_local_pages_are_allowed(origin: str) -> None:
    assert OriginRules(()).allows(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "chrome-extension://abcdef",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil",
        "",
    ],
)
def test_strangers_are_not(origin: str) -> None:
    assert not OriginRules(()).allows(origin)


def test_setting_adds_origins_of_any_scheme() -> None:
    rules = OriginRules(("chrome-extension://*", "https://*.example.org"))
    assert rules.allows("chrome-extension://abcdef")
    assert rules.allows("https://a.example.org")
    assert not rules.allows("https://example.net")
    assert OriginRules(("*",)).allows("http://anything")


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost",
        "LOCALHOST:11434",
        "127.0.0.1:9",
        "[::1]:11434",
        "my.local",
        "a.internal",
        "192.168.1.5",
        "0.0.0.0",
    ],
)
def test_names_of_this_machine_pass(host: str) -> None:
    assert host_allowed(host, LOOPBACK)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "8.8.8.8", "evil.example:11434"])
def test_names_rebound_to_loopback_do_not(host: str) -> None:
    assert not host_allowed(host, LOOPBACK)
    assert host_allowed(host, parse_address("0.0.0.0"))


def test_own_page_needs_no_permission() -> None:
    assert is_own_origin("http://box:11434", "box:11434")
    assert not is_own_origin("http://evil", "box:11434")
