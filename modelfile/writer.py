"""Writes commands as a Modelfile that reads back equal, whatever the values hold (contract section 14)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..core.errors import InvalidRequest
from .grammar import COMMANDS, JSON_SUFFIX, QUOTES
from .parser import Command, scan_value


def write_modelfile(commands: Iterable[Command]) -> str:
    """The commands as text, one after another. Errors: as write_command."""
    return "".join(write_command(command) for command in commands)


def write_command(command: Command) -> str:
    """One command with the line end that closes it.

    The value is bare, else in one quote, else in three, and as a JSON string only where none of these reads back.
    Errors: InvalidRequest for a keyword, parameter name or role that the language does not have.
    """
    row = COMMANDS.get(command.keyword)
    if row is None or not row.accepts(command.argument):
        shown = f"{command.keyword} {command.argument}"[:80].strip()
        raise InvalidRequest(f"a Modelfile cannot hold the command {shown!r}")
    word = command.keyword.upper()
    argument = f"{command.argument} " if command.argument else ""
    form = _quote(command.value)
    if form is None:
        # ASCII, so that what a quote would lose or UTF-8 cannot hold survives as an escape.
        word, form = word + JSON_SUFFIX, json.dumps(command.value)
    return f"{word} {argument}{form}\n"


def _quote(value: str) -> str | None:
    forms = (value, *(quote + value + quote for quote in reversed(QUOTES)))
    return next((form for form in forms if _reads_back(form, value)), None)


def _reads_back(form: str, value: str) -> bool:
    try:
        form.encode()
    except UnicodeEncodeError:
        return False
    return scan_value(f"{form}\n", 0) == (value, len(form))
