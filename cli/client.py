"""The client of the daemon's HTTP API: JSON requests, NDJSON streams, uploads. Error answers become errors here."""

from __future__ import annotations

import http.client
import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.address import Address
from ..core.errors import CorralError, Failure
from .connection import Unreachable, open_connection

_CODES = {
    400: "invalid_request",
    403: "forbidden",
    404: "model_not_found",
    499: "client_gone",
    503: "queue_full",
}
_LOST = "the daemon closed the connection before its answer was complete; its log may say why"


class Client:
    """Talks to one daemon. `target` is the path of its Unix socket, or its address; each request has its connection."""

    def __init__(self, target: Path | Address) -> None:
        self._target = target

    @property
    def is_local(self) -> bool:
        """True over the Unix socket, where the daemon may be told paths of this machine."""
        return isinstance(self._target, Path)

    @property
    def place(self) -> str:
        """Where the daemon is, for messages."""
        return f"at {self._target.url}" if isinstance(self._target, Address) else f"on {self._target}"

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send JSON, or bytes as they are, and read a JSON answer; None for an empty one.

        Errors: Failure with the daemon's message; Unreachable.
        """
        with self._exchange(method, path, _encode(body)) as response:
            answer = response.read()
        return self._decode(answer) if answer else None

    def stream(self, path: str, body: Any) -> Generator[dict[str, Any], None, None]:
        """POST JSON and yield the lines of the answer. Closing the iterator hangs up, which ends the work.

        Errors: Failure with the daemon's message, also from an error in a line; Unreachable, also when the last line
        is neither `done` nor `success`.
        """
        complete = False
        with self._exchange("POST", path, _encode(body)) as response:
            for line in filter(bytes.strip, response):
                values = self._decode(line)
                if "error" in values:
                    raise Failure("internal", _text(values["error"]))
                complete = bool(values.get("done")) or values.get("status") == "success"
                yield values
        if not complete:
            raise Unreachable(_LOST)

    def has_blob(self, digest: str) -> bool:
        """Whether the daemon's store has a blob. Errors: Failure, Unreachable."""
        try:
            with self._exchange("HEAD", f"/api/blobs/{digest}", None):
                return True
        except Failure as error:
            if error.status == 404:
                return False
            raise

    def upload(self, digest: str, chunks: Iterable[bytes]) -> None:
        """Send a blob of any size. Errors: Failure, Unreachable."""
        with self._exchange("POST", f"/api/blobs/{digest}", chunks) as response:
            response.read()

    def _decode(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except ValueError:
            raise Unreachable(f"what answers {self.place} does not speak Corral's API") from None

    @contextmanager
    def _exchange(
        self, method: str, path: str, body: bytes | Iterable[bytes] | None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = open_connection(self._target)
        response = None
        try:
            self._send(connection, method, path, body)
            try:
                response = connection.getresponse()
                if response.status >= 400:
                    raise _failure(response)
                yield response
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_LOST) from error
        finally:
            if response is not None:
                response.close()
            connection.close()

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | Iterable[bytes] | None
    ) -> None:
        headers = {"Content-Type": "application/json"} if isinstance(body, bytes) else {}
        try:
            connection.connect()
        except OSError as error:
            raise Unreachable(f"no daemon answers {self.place}: {error.strerror or error}") from error
        try:
            connection.request(method, path, body, headers, encode_chunked=not isinstance(body, bytes | None))
        except (BrokenPipeError, ConnectionResetError):
            # The daemon may refuse an upload before it has read all of it; its answer says why.
            return
        except OSError as error:
            raise Unreachable(_LOST) from error


def _encode(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return json.dumps(body).encode()


def _failure(response: http.client.HTTPResponse) -> CorralError:
    content = response.read()
    try:
        values = json.loads(content)
        message = _text(values["error"])
    except (ValueError, KeyError, TypeError):
        message = f"the daemon answered {response.status} {response.reason}".rstrip()
    return Failure(_CODES.get(response.status, "internal"), message)


def _text(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message", error)
    return error if isinstance(error, str) else json.dumps(error)
