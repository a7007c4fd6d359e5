"""Printing an answer as it streams in, and the statistics after it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

from .formats import format_duration

if TYPE_CHECKING:
    from .wrap import WordWrapper

Lines = Generator[dict[str, Any], None, None]

# What a model writes must not drive the terminal: control characters are left out there, but never in a pipe.
_CONTROLS = {code: None for code in [*range(32), *range(127, 160)] if chr(code) not in "\n\t"}
_THINKING_START, _THINKING_END = "Thinking...\n", "\n...done thinking.\n\n"


class AnswerPrinter:
    """Writes answer text to `out` and thinking to `notes`. `text` and `thinking` hold what has come so far.

    With `wraps` words stay whole on a terminal; a pipe always gets the text as it is.
    """

    def __init__(self, out: TextIO, notes: TextIO, wraps: bool = True) -> None:
        self._out = out
        self._notes = notes
        self._held_newlines = ""
        self._is_thinking = False
        self._wrapper = _make_wrapper() if wraps and out.isatty() else None
        self.text = ""
        self.thinking = ""

    def print(self, lines: Lines) -> dict[str, Any]:
        """Print all lines of /api/generate or /api/chat and one newline. Returns the last line.

        Errors: those of the stream; leaving early, as Ctrl-C does, hangs up.
        """
        last: dict[str, Any] = {}
        try:
            with closing(lines):
                for last in _with_spinner(lines, self._notes):
                    message = last.get("message") or {}
                    self._think(last.get("thinking") or message.get("thinking") or "")
                    self._say(last.get("response") or message.get("content") or "")
        finally:
            self._end()
        return last

    def _end(self) -> None:
        self._stop_thinking()
        if self.text:
            self._write(self._out, (self._wrapper.flush() if self._wrapper else "") + "\n")

    def _say(self, text: str) -> None:
        if not text:
            return
        self._stop_thinking()
        self.text += text
        # Newlines wait for the text after them, so that an answer ends in exactly one.
        body = (self._held_newlines + text).rstrip("\n")
        self._held_newlines = (self._held_newlines + text)[len(body) :]
        self._write(self._out, self._wrapper.feed(body) if self._wrapper else body)

    def _think(self, text: str) -> None:
        if not text:
            return
        if not self._is_thinking:
            self._write(self._notes, _THINKING_START)
            self._is_thinking = True
        self.thinking += text
        self._write(self._notes, text)

    def _stop_thinking(self) -> None:
        if self._is_thinking:
            self._write(self._notes, _THINKING_END)
            self._is_thinking = False

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text.translate(_CONTROLS) if stream.isatty() else text)
        stream.flush()


def format_statistics(final: dict[str, Any]) -> str:
    """Times and rates of a final answer, in Ollama's form."""
    rows = [
        (f"{name} duration:", format_duration(final[f"{name}_duration"]))
        for name in ("total", "load")
        if final.get(f"{name}_duration")
    ]
    for field, name in (("prompt_eval", "prompt eval"), ("eval", "eval")):
        count, duration_ns = final.get(f"{field}_count", 0), final.get(f"{field}_duration", 0)
        if count:
            rows.append((f"{name} count:", f"{count} token(s)"))
        if duration_ns:
            rows.append((f"{name} duration:", format_duration(duration_ns)))
        if count and duration_ns:
            rows.append((f"{name} rate:", f"{count / duration_ns * 1e9:.2f} tokens/s"))
    return "".join(f"{label:<21} {value}\n" for label, value in rows)


def _make_wrapper() -> WordWrapper:
    from .wrap import WordWrapper  # here: only a terminal needs it

    return WordWrapper(lambda: get_terminal_size().columns)


@contextmanager
def spinner(stream: TextIO) -> Iterator[None]:
    """A small sign of life on a terminal, removed at the end; nothing anywhere else."""
    if not stream.isatty():
        yield
        return
    from rich.console import Console

    console = Console(file=stream)
    if console.is_dumb_terminal:
        yield
        return
    with console.status(""):
        yield


def _with_spinner(lines: Iterable[dict[str, Any]], stream: TextIO) -> Iterator[dict[str, Any]]:
    iterator = iter(lines)
    with spinner(stream):
        first = next(iterator, None)
    if first is not None:
        yield first
        yield from iterator
