"""Frames between daemon and runner: a 4-byte little-endian length, then one msgpack value. Both ends use this file."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from .errors import InvalidRequest
from .events import Event
from .types import EmbedRequest, GenerateRequest, LoadSpec

# A frame carries at most a prompt with its images; more than this is a broken peer, not a request.
MAX_FRAME_BYTES = 1 << 30
_LENGTH = struct.Struct("<I")


class Load(msgspec.Struct, frozen=True, tag="load"):
    """First frame to a runner: what to load."""

    spec: LoadSpec


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    request: GenerateRequest


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    request: EmbedRequest


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """Drop a request, whatever its phase. It still gets its terminal event."""

    id: int


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Asks the engine's thread for a sign of life."""


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """End now. EOF means the same."""


class LoadProgress(msgspec.Struct, frozen=True, tag="load_progress"):
    """How much of the weights is loaded, 0 to 1."""

    fraction: float


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The engine is ready. Window in tokens for each sequence, sizes in bytes."""

    num_ctx: int
    num_parallel: int
    size_bytes: int
    size_vram_bytes: int


class LoadRefused(msgspec.Struct, frozen=True, tag="load_refused"):
    code: str
    message: str


class Emit(msgspec.Struct, frozen=True, tag="emit"):
    """Events of running requests, in order, with the id of the request that each belongs to."""

    events: list[tuple[int, Event]]


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """The engine's thread has answered a Ping."""


class Faulted(msgspec.Struct, frozen=True, tag="faulted"):
    """The engine cannot go on and the process is about to end: send nothing more. Its requests end by Emit."""


ToRunner = Load | Generate | Embed | Abort | Ping | Shutdown
ToDaemon = LoadProgress | Loaded | LoadRefused | Emit | Alive | Faulted

_encoder = msgspec.msgpack.Encoder()
to_runner_decoder: msgspec.msgpack.Decoder[ToRunner] = msgspec.msgpack.Decoder(ToRunner)
to_daemon_decoder: msgspec.msgpack.Decoder[ToDaemon] = msgspec.msgpack.Decoder(ToDaemon)


def encode_frame(frame: ToRunner | ToDaemon) -> bytes:
    """One frame with its length in front. Errors: InvalidRequest for a whole number that msgpack cannot hold."""
    try:
        body = _encoder.encode(frame)
    except OverflowError:
        raise InvalidRequest("a whole number in the request is beyond 64 bits: write it as text") from None
    return _LENGTH.pack(len(body)) + body


class FrameSplitter:
    """Cuts a byte stream into frame bodies. Errors: ValueError on a length beyond MAX_FRAME_BYTES."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Bodies that are whole once `data` has arrived."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise ValueError(f"frame of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield body
