"""Progress of pull and create: bars on a terminal, else plain lines on standard error that a log can keep."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from .command import warn
from .formats import format_size

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console
    from rich.progress import Progress, TaskID

_DIGEST = re.compile(r"sha256:([0-9a-f]{12})[0-9a-f]{52}")


class ProgressPrinter(Protocol):
    """Shows the steps of one job."""

    def update(self, line: dict[str, Any]) -> None:
        """Show a step: `status`, and `total` and `completed` in bytes where it moves data."""

    def close(self) -> None:
        """End the display."""


class PlainProgress:
    """A line when the status changes; while data moves, a line every 10 %."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last_status = ""
        self._shown_tenths: dict[str, int] = {}

    def update(self, line: dict[str, Any]) -> None:
        """Print the step where it is news."""
        status, total = str(line.get("status", "")), int(line.get("total") or 0)
        if total <= 0:
            if status and status != self._last_status:
                self._print(status)
            self._last_status = status
            return
        completed = int(line.get("completed") or 0)
        tenth = min(completed * 10 // total, 10)
        if tenth > self._shown_tenths.get(status, -1):
            self._shown_tenths[status] = tenth
            self._print(f"{status}: {tenth * 10}% of {format_size(total)}")

    def close(self) -> None:
        """Nothing is open."""

    def _print(self, text: str) -> None:
        self._out.write(f"{text}\n")
        self._out.flush()


class BarProgress:
    """Lines and bars in the order of the steps: bars that are done stay where they are."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last_status = ""

    def update(self, line: dict[str, Any]) -> None:
        """Move the step's bar, or print its line."""
        # A whole digest says no more to a person than its start, and does not fit on a line.
        status = _DIGEST.sub(r"\1", str(line.get("status", "")))
        total = int(line.get("total") or 0)
        if total > 0:
            self._move(status, int(line.get("completed") or 0), total)
        elif status and status != self._last_status:
            self.close()
            self._console.print(status, markup=False, highlight=False)
        self._last_status = status

    def close(self) -> None:
        """Leave the bars as they are and give the terminal back."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
            self._tasks = {}

    def _move(self, status: str, completed: int, total: int) -> None:
        if self._bars is None:
            self._bars = _make_bars(self._console)
            self._bars.start()
        if status not in self._tasks:
            self._tasks[status] = self._bars.add_task(status, total=total)
        self._bars.update(self._tasks[status], total=total, completed=completed)


def _make_bars(console: Console) -> Progress:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
    from rich.table import Column

    # On a narrow terminal the name gives way, never the numbers.
    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    numbers = DownloadColumn(table_column=Column(no_wrap=True, min_width=13))
    speed = TransferSpeedColumn(table_column=Column(no_wrap=True, min_width=10))
    return Progress(name, BarColumn(bar_width=20), numbers, speed, console=console)


def open_progress(out: TextIO) -> ProgressPrinter:
    """Bars where `out` is a terminal that can show them (rich reads TERM and NO_COLOR), else plain lines."""
    if not out.isatty():
        return PlainProgress(out)
    from rich.console import Console

    console = Console(file=out)
    return PlainProgress(out) if console.is_dumb_terminal else BarProgress(console)


def show_progress(lines: Generator[dict[str, Any], None, None]) -> dict[str, Any]:
    """Show a job's lines on standard error until it ends, its warnings after that. Returns the last line.

    Errors: those of the stream; leaving early hangs up.
    """
    printer = open_progress(sys.stderr)
    last: dict[str, Any] = {}
    warnings: list[str] = []
    try:
        with closing(lines):
            for last in lines:
                printer.update(last)
                warnings += last.get("warnings") or []
    finally:
        printer.close()
    for warning in dict.fromkeys(warnings):
        warn(warning)
    return last
