"""Who may talk to the daemon from a browser: the Origin and Host checks of contract section 12."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from aiohttp import web

from ..core.address import Address

_DEFAULT_ORIGINS = (
    *(f"{scheme}://{host}" for host in ("localhost", "127.0.0.1", "0.0.0.0") for scheme in ("http", "https")),
    *(f"{scheme}://{host}:*" for host in ("localhost", "127.0.0.1", "0.0.0.0") for scheme in ("http", "https")),
    "app://*",
    "file://*",
    "tauri://*",
    "vscode-webview://*",
    "vscode-file://*",
)
_METHODS = "GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS"
_STAINLESS = "lang package-version os arch retry-count runtime runtime-version async helper-method poll-helper".split()
_HEADERS = ",".join(
    (
        *("Authorization", "Content-Type", "User-Agent", "Accept", "X-Requested-With", "OpenAI-Beta"),
        *(f"x-stainless-{name}" for name in (*_STAINLESS, "custom-poll-interval", "timeout")),
    )
)
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal")


class OriginRules:
    """Decides by the Origin header. `extra` are patterns of the `origins` setting, `*` matching anything."""

    def __init__(self, extra: Iterable[str]) -> None:
        patterns = [re.escape(pattern).replace(r"\*", ".*") for pattern in (*_DEFAULT_ORIGINS, *extra)]
        self._allowed = re.compile("|".join(patterns), re.IGNORECASE)

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may use the API."""
        return bool(self._allowed.fullmatch(origin))

    @staticmethod
    def headers(origin: str, preflight: bool) -> dict[str, str]:
        """CORS headers for an allowed origin."""
        headers = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if preflight:
            headers |= {
                "Access-Control-Allow-Methods": _METHODS,
                "Access-Control-Allow-Headers": _HEADERS,
                "Access-Control-Max-Age": "43200",
            }
        return headers


def is_local(request: web.Request) -> bool:
    """Whether a request came over the Unix socket, which only this user can open."""
    transport = request.transport
    return transport is not None and isinstance(transport.get_extra_info("sockname"), str | bytes)


def host_allowed(host_header: str, listen: Address) -> bool:
    """Whether a Host header names this machine. A page that rebinds its own name to loopback does not pass.

    Checked only while listening on loopback: elsewhere names of this machine cannot be known.
    """
    if not listen.is_loopback:
        return True
    host = (urlsplit(f"//{host_header}").hostname or "").lower()
    if host in ("", "localhost", socket.gethostname().lower()) or host.endswith(_LOCAL_SUFFIXES):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_unspecified


def is_own_origin(origin: str, host_header: str) -> bool:
    """Whether a page was served by this daemon itself."""
    return urlsplit(origin).netloc.lower() == host_header.lower() != ""
