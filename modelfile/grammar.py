"""The tables of the Modelfile language (contract section 14): its commands, what each takes, how values are quoted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

# Longest first: a value that opens with three quotes also opens with one.
QUOTES = ('"""', '"')

# Our extension: `SYSTEM:json "…"` carries any text, for the few values that no quotes can.
JSON_SUFFIX = ":json"

ROLES = ("system", "user", "assistant")

_NAME = re.compile(r"[A-Za-z0-9_]+")
_ROLE = re.compile(r"[A-Za-z]+")


class CommandRow(NamedTuple):
    """What follows a command word. `argument` is the form of the word before the value, where the command has one;
    `choices` are the only words allowed there, where that is so; `usage` is what an error says about it."""

    usage: str
    argument: re.Pattern[str] | None = None
    choices: tuple[str, ...] = ()

    def accepts(self, argument: str) -> bool:
        """True for an argument that the command may have, and for "" where it has none."""
        if self.argument is None:
            return argument == ""
        return bool(self.argument.fullmatch(argument)) and (not self.choices or argument in self.choices)


COMMANDS: dict[str, CommandRow] = {
    "from": CommandRow("FROM takes the name of a model or the path of a file, as in FROM llama3"),
    "license": CommandRow("LICENSE takes a text"),
    "template": CommandRow("TEMPLATE takes a prompt template"),
    "system": CommandRow("SYSTEM takes a text"),
    "adapter": CommandRow("ADAPTER takes the path of an adapter"),
    "draft": CommandRow("DRAFT takes the name of a model or the path of a file"),
    "renderer": CommandRow("RENDERER takes the name of a renderer"),
    "parser": CommandRow("PARSER takes the name of a parser"),
    "parameter": CommandRow("PARAMETER takes a name and a value, as in PARAMETER temperature 0.7", _NAME),
    "message": CommandRow("MESSAGE takes a role and a text, as in MESSAGE user Hello", _ROLE, ROLES),
    "requires": CommandRow("REQUIRES takes a version, as in REQUIRES 0.14.0"),
}


def join_choices(words: Iterable[str]) -> str:
    """Three or more words as an error lists them: `"a", "b", or "c"`."""
    *first, last = (f'"{word}"' for word in words)
    return f"{', '.join(first)}, or {last}"
