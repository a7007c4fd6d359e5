"""The host setting in all its forms, as the daemon binds it and as a client dials it."""

from __future__ import annotations

import pytest
from corral.core.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port", "url"),
    [
        ("11501", "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        (":11501", "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        ("127.0.0.1", "127.0.0.1", 11434, "http://127.0.0.1:11434"),
        ("127.0.0.1:11501", "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        (" 127.0.0.1:11501 ", "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        ('"127.0.0.1:11501"', "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        ("::1", "::1", 11434, "http://[::1]:11434"),
        ("[::1]", "::1", 11434, "http://[::1]:11434"),
        ("[::1]:11501", "::1", 11501, "http://[::1]:11501"),
        ("0.0.0.0:11501", "0.0.0.0", 11501, "http://127.0.0.1:11501"),
        ("[::]:11501", "::", 11501, "http://[::1]:11501"),
        ("http://127.0.0.1", "127.0.0.1", 80, "http://127.0.0.1:80"),
        ("https://models.example", "models.example", 443, "https://models.example:443"),
        ("http://127.0.0.1:11501/", "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        ("http://127.0.0.1:11501/api/v1", "127.0.0.1", 11501, "http://127.0.0.1:11501"),
        ("http://[::1]:11501/", "::1", 11501, "http://[::1]:11501"),
        ("localhost/path", "localhost", 11434, "http://localhost:11434"),
        ("", "127.0.0.1", 11434, "http://127.0.0.1:11434"),
    ],
)
def test_address_when_valid(text: str, host: str, port: int, url: str) -> None:
    address = parse_address(text)
    assert (address.host, address.port, address.url) == (host, port, url)
    assert parse_address(address.url).url == url


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("127.0.0.1:99999", "'99999' is not a port"),
        ("127.0.0.1:-1", "'-1' is not a port"),
        ("127.0.0.1:", "'' is not a port"),
        ("[::1]:http", "'http' is not a port"),
        ("99999", "'99999' is not a port"),
        ("host:²", "'²' is not a port"),
        ("ftp://127.0.0.1", "'ftp://127.0.0.1': the scheme must be http or https"),
        ("my host", "'my host' is not a host name"),
        ("user@host", "'user@host' is not a host name"),
        ("[::1]x", "is not a host name"),
    ],
)
def test_error_when_invalid(text: str, quoted: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_address(text)
    assert quoted in str(caught.value)


@pytest.mark.parametrize(
    ("host", "wildcard", "loopback"),
    [
        ("0.0.0.0", True, False),
        ("::", True, False),
        ("", True, False),
        ("127.0.0.1", False, True),
        ("127.1.2.3", False, True),
        ("::1", False, True),
        ("LocalHost", False, True),
        ("10.0.0.1", False, False),
        ("localhost.example", False, False),
    ],
)
def test_reach_when_hosts_differ(host: str, wildcard: bool, loopback: bool) -> None:
    address = Address("http", host, 1)
    assert (address.is_wildcard, address.is_loopback) == (wildcard, loopback)
