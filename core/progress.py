"""Progress of long jobs (pull, create): one value type, printed by the daemon as NDJSON and by the CLI as bars."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step. `total` and `completed` are bytes; status texts are those of contract sections 8 and 9.

    The last step, `success`, may say which model was installed and what was not as asked.
    """

    status: str
    digest: str = ""
    total: int = 0
    completed: int = 0
    model: str = ""
    warnings: tuple[str, ...] = ()


Report = Callable[[Progress], None]
