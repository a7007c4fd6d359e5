"""Digests: `sha256:` and 64 lower-case hex digits, the only form that names a blob."""

from __future__ import annotations

import hashlib
import re

from ..core.errors import InvalidDigest

_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")


def parse_digest(text: str) -> str:
    """Normalise a digest; `sha256-` and upper-case digits are taken and mean the same blob.

    Errors: InvalidDigest for everything else.
    """
    match = _DIGEST.fullmatch(text)
    if not match:
        raise InvalidDigest("invalid digest format: give sha256: and 64 hex digits")
    return f"sha256:{match.group(1).lower()}"


def digest_bytes(data: bytes) -> str:
    """The digest of bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def short_digest(digest: str) -> str:
    """The first 12 hex digits, as progress lines show it."""
    return digest.removeprefix("sha256:")[:12]
