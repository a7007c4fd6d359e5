"""The real terminal of a chat: prompt_toolkit for the line, with history and pasted text kept whole."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from ..core.settings import history_path


class OptionalFileHistory(FileHistory):
    """A history file that can be switched off. It holds what a person typed, so only they may read it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.is_kept = True
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Earlier lines, newest first; none when the file cannot be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Append a line. A disk that refuses does not end the chat."""
        if not self.is_kept:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            super().store_string(string)
        except OSError:
            self.is_kept = False


class PromptTerminal:
    """A repl.Terminal on standard input and output."""

    out: TextIO

    def __init__(self) -> None:
        self.out = sys.stdout
        self._history = OptionalFileHistory(history_path())
        self._prompt: PromptSession[str] = PromptSession(history=self._history, key_bindings=_bindings())

    @property
    def keep_history(self) -> bool:
        """Whether lines go to the history file."""
        return self._history.is_kept

    @keep_history.setter
    def keep_history(self, keep: bool) -> None:
        self._history.is_kept = keep

    def read(self, prompt: str) -> str:
        """A line, or pasted lines. Errors: EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C on an empty line."""
        return self._prompt.prompt(prompt)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return bindings
