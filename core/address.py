"""The host setting: one reading of it for daemon and client (contract section 1, `OLLAMA_HOST`)."""

from __future__ import annotations

import ipaddress
import re

import msgspec

DEFAULT_PORT = 11434
_SCHEME_PORTS = {"http": 80, "https": 443}


class Address(msgspec.Struct, frozen=True):
    """Where the daemon listens, or is reached. `host` has no brackets."""

    scheme: str
    host: str
    port: int

    @property
    def is_wildcard(self) -> bool:
        """True for 0.0.0.0, :: and the empty host: bound on all interfaces, reached over loopback."""
        return self.host in ("", "0.0.0.0", "::")

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def connect_host(self) -> str:
        """The host a client on this machine dials."""
        if not self.is_wildcard:
            return self.host
        return "::1" if self.host == "::" else "127.0.0.1"

    @property
    def url(self) -> str:
        """A URL that works in a browser on this machine."""
        host = self.connect_host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read host, port, host:port, [v6]:port, bare v6 or a URL. A URL with no port means its scheme's, else 11434.

    Errors: ValueError quotes the part that is wrong.
    """
    text = text.strip().strip("\"'")
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    if scheme not in _SCHEME_PORTS:
        raise ValueError(f"{text!r}: the scheme must be http or https")
    rest = rest.split("/", 1)[0]
    host, port = _split_port(rest)
    if port is None:
        port_number = _SCHEME_PORTS[scheme] if separator else DEFAULT_PORT
    else:
        port_number = _port(port)
    if not re.fullmatch(r"[A-Za-z0-9_.:%-]*", host):
        raise ValueError(f"{host!r} is not a host name or address")
    return Address(scheme, host or "127.0.0.1", port_number)


def _split_port(rest: str) -> tuple[str, str | None]:
    if rest.isdigit():
        return "", rest
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", rest)
    if bracketed:
        return bracketed.group(1), bracketed.group(2)
    if rest.count(":") > 1:
        return rest, None
    host, colon, port = rest.partition(":")
    return host, port if colon else None


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise ValueError(f"{text!r} is not a port: give a number from 1 to 65535")
    return int(text)
