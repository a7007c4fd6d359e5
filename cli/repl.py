"""The chat at the terminal: reads messages and /commands, prints answers. The terminal itself is behind a protocol."""

from __future__ import annotations

from typing import Any, Protocol, TextIO

from ..core.errors import CorralError
from .answer import AnswerPrinter, format_statistics, spinner
from .chat import ChatSession
from .connection import Unreachable
from .repl_commands import is_command, run_command

PROMPT = ">>> "
MORE_PROMPT = "... "
EXIT_HINT = "Use Ctrl + d or /bye to exit."
_QUOTES = '"""'
# Commands whose argument may run over several lines.
_MULTILINE_STARTS = (_QUOTES, f"/set system {_QUOTES}")


class Terminal(Protocol):
    """What the chat needs of a terminal. `keep_history` says whether what is typed is kept for later chats."""

    out: TextIO
    keep_history: bool

    def read(self, prompt: str) -> str:
        """A line without its end, or several that were pasted together.

        Errors: EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C on an empty line.
        """


class Repl:
    """Runs one chat. Commands, in repl_commands, change its fields."""

    def __init__(self, session: ChatSession, terminal: Terminal, verbose: bool = False, wraps: bool = True) -> None:
        self.session = session
        self.terminal = terminal
        self.verbose = verbose
        self.wraps = wraps
        self.is_over = False

    def run(self) -> None:
        """Load the model, then answer until the person leaves.

        Errors: Failure or Unreachable when the model cannot be loaded; later ones are only shown.
        """
        with spinner(self.terminal.out):
            self.session.load(self.session.model)
        while not self.is_over:
            try:
                text, is_quoted = self._read()
            except KeyboardInterrupt:
                self.write(f"\n{EXIT_HINT}\n")
            except EOFError:
                self.write("\n")
                return
            else:
                self._take(text, is_quoted)

    def write(self, text: str) -> None:
        """Write to the terminal at once."""
        self.terminal.out.write(text)
        self.terminal.out.flush()

    def _read(self) -> tuple[str, bool]:
        """What was entered, and whether it stood in quotes, so that it is a message whatever it begins with."""
        text = self.terminal.read(PROMPT)
        if not text.lstrip().startswith(_MULTILINE_STARTS):
            return text.strip(), False
        head, _, body = text.lstrip().partition(_QUOTES)
        while not body.rstrip().endswith(_QUOTES):
            body += "\n" + self.terminal.read(MORE_PROMPT)
        return head + body.rstrip().removesuffix(_QUOTES).strip("\n"), not head

    def _take(self, text: str, is_quoted: bool) -> None:
        if not text:
            return
        try:
            if not is_quoted and is_command(text):
                run_command(self, text)
            else:
                self._answer(text)
        except KeyboardInterrupt:
            self.write("\n")
        except (CorralError, Unreachable) as error:
            self.write(f"Error: {error.message}\n")

    def _answer(self, text: str) -> None:
        printer = AnswerPrinter(self.terminal.out, self.terminal.out, self.wraps)
        final: dict[str, Any] = {}
        try:
            final = printer.print(self.session.ask(text))
        except KeyboardInterrupt:
            # Leaving the stream hung up, which ends the answer; what came of it is part of the conversation.
            pass
        finally:
            self.session.remember(text, printer.text, printer.thinking)
        self.write("\n")
        for warning in dict.fromkeys(final.get("warnings") or []):
            self.write(f"warning: {warning}\n")
        if self.verbose and final:
            self.write(format_statistics(final))
