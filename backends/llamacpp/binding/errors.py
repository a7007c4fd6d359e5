"""llama.cpp's own log: its errors are kept, to name the cause of what failed."""

from __future__ import annotations

import ctypes
import re
from collections import deque

from llama_cpp import llama_cpp as lib

from ....core.errors import LoadFailed

_ERROR_LEVEL = 4

last_errors: deque[str] = deque(maxlen=8)


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def keep_errors(level: int, text: bytes, user_data: ctypes.c_void_p) -> None:
    """Take note of an error that llama.cpp tells of."""
    del user_data
    if level >= _ERROR_LEVEL and (line := text.decode("utf-8", "replace").strip()):
        last_errors.append(line)


def start_backend() -> None:
    """Prepare llama.cpp once for this process and keep its errors for messages."""
    lib.llama_log_set(keep_errors, ctypes.c_void_p(0))
    lib.llama_backend_init()


def load_failed(what: str) -> LoadFailed:
    """The error for a load that failed, with llama.cpp's reason."""
    # llama.cpp's first error names the cause; quoted names of files are paths of this machine.
    reasons = [re.sub(r"'[^']*/[^']*'", "the file", line) for line in last_errors]
    reason = reasons[0].split(": ", 1)[-1] if reasons else "llama.cpp gave no reason"
    return LoadFailed(f"{what}: {reason}")
