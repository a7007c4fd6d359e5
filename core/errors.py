"""The one tree of errors, and the one table code -> (HTTP status, retryable).

CorralError
├── InvalidRequest          a field, option or body that cannot be used
│   ├── InvalidName         not a model name
│   ├── InvalidDigest       not sha256: and 64 hex digits
│   ├── InvalidModelfile    grammar or value, with line and column
│   ├── InvalidGGUF         a file that is not what it claims
│   ├── InvalidTemplate     a chat template that cannot be parsed or run
│   ├── InvalidFormat       a schema or grammar that cannot constrain an answer
│   ├── Unsupported         the model or this version cannot do it
│   └── ContextExceeded     the prompt does not fit the window
├── Forbidden               a stranger's Origin or Host, or a path over TCP
├── ModelNotFound           nothing of that name is installed
├── BlobNotFound            a digest that the store does not have
├── QueueFull               too many requests wait
├── ClientGone              the caller left before its turn
├── SourceFailed            a pull that its source refused or broke off
├── DigestMismatch          bytes are not what was promised
├── StoreFailed             the disk refused
├── LoadFailed              the engine could not load the model
├── RunnerDied              the model's process ended under a request
└── Internal                a fault of ours
"""

from __future__ import annotations

from typing import NamedTuple


class ErrorRow(NamedTuple):
    """How an error code shows over HTTP."""

    status: int
    retryable: bool


ERRORS: dict[str, ErrorRow] = {
    "invalid_request": ErrorRow(400, False),
    "invalid_name": ErrorRow(400, False),
    "invalid_digest": ErrorRow(400, False),
    "invalid_modelfile": ErrorRow(400, False),
    "invalid_gguf": ErrorRow(400, False),
    "invalid_template": ErrorRow(400, False),
    "invalid_format": ErrorRow(400, False),
    "unsupported": ErrorRow(400, False),
    "context_exceeded": ErrorRow(400, False),
    "forbidden": ErrorRow(403, False),
    "model_not_found": ErrorRow(404, False),
    "blob_not_found": ErrorRow(404, False),
    "digest_mismatch": ErrorRow(400, True),
    "client_gone": ErrorRow(499, True),
    "source_failed": ErrorRow(500, True),
    "store_failed": ErrorRow(500, True),
    "load_failed": ErrorRow(500, True),
    "runner_died": ErrorRow(500, True),
    "internal": ErrorRow(500, False),
    "queue_full": ErrorRow(503, True),
}


class CorralError(Exception):
    """An error with a code. The message says what, where and what to do; it may be shown to any client."""

    code = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status of this code."""
        return ERRORS[self.code].status


class InvalidRequest(CorralError):
    code = "invalid_request"


class InvalidName(InvalidRequest):
    code = "invalid_name"


class InvalidDigest(InvalidRequest):
    code = "invalid_digest"


class InvalidModelfile(InvalidRequest):
    """Carries the place: `line` and `column` count from 1."""

    code = "invalid_modelfile"

    def __init__(self, message: str, line: int, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class InvalidGGUF(InvalidRequest):
    code = "invalid_gguf"


class InvalidTemplate(InvalidRequest):
    code = "invalid_template"


class InvalidFormat(InvalidRequest):
    code = "invalid_format"


class Unsupported(InvalidRequest):
    code = "unsupported"


class ContextExceeded(InvalidRequest):
    code = "context_exceeded"


class Forbidden(CorralError):
    code = "forbidden"


class ModelNotFound(CorralError):
    code = "model_not_found"


class BlobNotFound(CorralError):
    code = "blob_not_found"


class QueueFull(CorralError):
    code = "queue_full"


class ClientGone(CorralError):
    code = "client_gone"


class SourceFailed(CorralError):
    code = "source_failed"


class DigestMismatch(CorralError):
    code = "digest_mismatch"


class StoreFailed(CorralError):
    code = "store_failed"


class LoadFailed(CorralError):
    code = "load_failed"


class RunnerDied(CorralError):
    code = "runner_died"


class Internal(CorralError):
    code = "internal"


class Failure(CorralError):
    """An error that crossed a process border as (code, message) and keeps its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code if code in ERRORS else "internal"
