"""Every path on disk. The tree below the models folder is Ollama's, so either program can be pointed at the other's:

    manifests/HOST/NAMESPACE/MODEL/TAG   JSON; the SHA-256 of its bytes is the model's digest
    blobs/sha256-HEX                     weights, templates, parameters, licences: named by what they hold
    .corral/lock                         held by the daemon that owns the store
    .corral/tmp/                         files being written; emptied when a daemon starts
    .corral/transfers/KEY.part, KEY.json a broken-off download and what it is of, so that it goes on later
    .corral/members/HEX.json             blobs that were unpacked from an archive of that SHA-256
    .corral/links/HEX.json               size and mtime of a file outside that a blob shares its bytes with

All of it is on one file system, so every rename into place is atomic.
"""

from __future__ import annotations

from pathlib import Path

from ..core.names import ModelName
from .digests import parse_digest


class Layout:
    """Paths below one models folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifests = root / "manifests"
        self.blobs = root / "blobs"
        self._own = root / ".corral"
        self.tmp = self._own / "tmp"
        self.transfers = self._own / "transfers"
        self.members = self._own / "members"
        self.links = self._own / "links"
        self.lock = self._own / "lock"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder that must exist."""
        return (self.manifests, self.blobs, self.tmp, self.transfers, self.members, self.links)

    def manifest(self, name: ModelName) -> Path:
        """Where the manifest of a name lies, spelt as given."""
        return self.manifests / name.host / name.namespace / name.model / name.tag

    def blob(self, digest: str) -> Path:
        """Where a blob lies. Errors: InvalidDigest, so no text from outside becomes a path unchecked."""
        return self.blobs / parse_digest(digest).replace(":", "-")

    def member_record(self, sha256: str) -> Path:
        """The record of an unpacked archive."""
        return self.members / f"{_hex(sha256)}.json"

    def link_record(self, digest: str) -> Path:
        """The record of a linked blob."""
        return self.links / f"{_hex(digest)}.json"

    def transfer(self, key: str, suffix: str) -> Path:
        """A file of a download; `key` is hex."""
        return self.transfers / f"{_hex(key)}{suffix}"


def _hex(digest: str) -> str:
    return parse_digest(digest if digest.startswith("sha256") else f"sha256:{digest}").removeprefix("sha256:")
