"""Progress of pull and create: bars on a terminal, else plain lines on standard error that a log can keep."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from .command import warn
from .formats import format_size

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console


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
    """A bar for each transfer, a line for each other step."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, console=console)
        self._progress.start()
        self._tasks: dict[str, Any] = {}
        self._last_status = ""

    def update(self, line: dict[str, Any]) -> None:
        """Move the step's bar, or print its line."""
        status, total = str(line.get("status", "")), int(line.get("total") or 0)
        if total > 0:
            if status not in self._tasks:
                self._tasks[status] = self._progress.add_task(status, total=total)
            self._progress.update(self._tasks[status], total=total, completed=int(line.get("completed") or 0))
        elif status and status != self._last_status:
            self._progress.console.print(status, markup=False, highlight=False)
        self._last_status = status

    def close(self) -> None:
        """Give the terminal back."""
        self._progress.stop()


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
