"""Reads a GGUF header forward, through a window of the file, and keeps account of the work that the file asks for.
A window rather than mmap: a file that is cut short meanwhile is then an error, not a SIGBUS that ends the daemon."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO

from ..core.errors import InvalidGGUF

_WINDOW_BYTES = 256 << 10
_MAX_ALL_TEXT_BYTES = 128 << 20
_MAX_STEPS = 1 << 24  # values walked over in one read
_MAX_KEPT_VALUES = 1 << 20
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class Cursor:
    """Reads forward through a window of the file, and keeps account of the work."""

    def __init__(self, file: BinaryIO, position: int = 0) -> None:
        self._file = file
        self._window = b""
        self._start = 0
        self._text_bytes = 0
        self._steps = 0
        self._kept = 0
        self.size = os.fstat(file.fileno()).st_size
        self.position = position

    def require(self, num_bytes: int, what: str) -> None:
        """Errors: InvalidGGUF when the file has fewer bytes left."""
        left = self.size - self.position
        if num_bytes > left:
            raise InvalidGGUF(
                f"the GGUF file ends early at byte {self.position}: "
                f"{what} needs at least {num_bytes} bytes from there, and {max(left, 0)} are left"
            )

    def step(self, count: int) -> None:
        """Errors: InvalidGGUF when the file makes more work than any model's does."""
        self._steps += count
        if self._steps > _MAX_STEPS:
            raise InvalidGGUF(f"the GGUF file holds more than {_MAX_STEPS} texts and lists in its metadata")

    def keep(self, count: int) -> None:
        """Errors: InvalidGGUF when the header would take more memory than any model's does."""
        self._kept += count
        if self._kept > _MAX_KEPT_VALUES:
            raise InvalidGGUF(f"the GGUF file holds more than {_MAX_KEPT_VALUES} values in its metadata")

    def take(self, num_bytes: int, what: str) -> bytes:
        """The next bytes. Errors: InvalidGGUF when the file ends before."""
        self._load(num_bytes, what)
        begin = self.position - self._start
        self.position += num_bytes
        return self._window[begin : begin + num_bytes]

    def u32(self, what: str) -> int:
        """The next 4 bytes as a number."""
        return int(_U32.unpack(self.take(4, what))[0])

    def u64(self, what: str) -> int:
        """The next 8 bytes as a number."""
        return int(_U64.unpack(self.take(8, what))[0])

    def text(self, limit: int, what: str) -> bytes:
        """A string's bytes. Errors: InvalidGGUF when it is longer than `limit`, or than the file."""
        length = self.u64(what)
        self.require(length, what)
        self._text_bytes += length
        if length > limit or self._text_bytes > _MAX_ALL_TEXT_BYTES:
            raise InvalidGGUF(f"{what}: a text of {length} bytes at byte {self.position} is too long (at most {limit})")
        return self.take(length, what)

    def skip_texts(self, count: int, what: str) -> None:
        """Pass over strings. In line, since a vocabulary has some hundred thousand of them."""
        unpack, position, size = _U64.unpack_from, self.position, self.size
        window, start, last = self._window, self._start, self._start + len(self._window) - 8
        for _ in range(count):
            if position > last:
                self.position = position
                self._load(8, what)
                window, start, last = self._window, self._start, self._start + len(self._window) - 8
            length = unpack(window, position - start)[0]
            if length > size - position - 8:
                self.position = position + 8
                self.require(length, what)
            position += 8 + length
        self.position = position

    def _load(self, num_bytes: int, what: str) -> None:
        """Make the window hold the next `num_bytes`."""
        if self._start <= self.position and self.position + num_bytes <= self._start + len(self._window):
            return
        self.require(num_bytes, what)
        self._file.seek(self.position)
        wanted = max(num_bytes, _WINDOW_BYTES)
        self._window = self._file.read(wanted)
        while num_bytes > len(self._window):
            more = self._file.read(wanted - len(self._window))
            if not more:
                self.size = self.position + len(self._window)
                self.require(num_bytes, what)
            self._window += more
        self._start = self.position
