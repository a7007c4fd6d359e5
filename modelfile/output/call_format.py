"""What a row of the table of call formats says: how to tell that a model writes it, how to read it, how to force it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .calls import Calls
from .cursor import Cursor, Steps

# Reads calls from just behind a marker, which it is given. Errors: Malformed; what was read is text then.
Reader: TypeAlias = Callable[[Cursor, Calls, str], Steps[None]]


@dataclass(frozen=True)
class TaggedArguments:
    """Arguments that are written one by one between tags, not as JSON. Values that are strings stand bare."""

    open: str
    middle: str
    close: str
    between: str = ""


@dataclass(frozen=True)
class Layout:
    """The texts around the names and arguments of calls, as the grammar of forced calls writes them.

    `begin` and `end` stand around all calls, and may be left out around a single one if `is_list_optional`. `between`
    is None where an answer holds one call at most. `arguments` None means JSON.
    """

    before: str
    middle: str
    after: str
    begin: str = ""
    end: str = ""
    between: str | None = "\n"
    name_is_json: bool = False
    is_list_optional: bool = False
    arguments: TaggedArguments | None = None


@dataclass(frozen=True)
class CallFormat:
    """One way of writing calls.

    `signs` are texts that a template has, all of them, when its model writes so. `markers` open calls anywhere in an
    answer, and `read` goes on from there. `begin` reads calls that an answer may begin with, without a marker.
    `head` is what an answer that is no call begins with, also where no tools are offered. `dropped` are texts without
    a meaning to anyone. `specials` may be control tokens of the vocabulary.
    """

    name: str
    signs: tuple[str, ...]
    markers: tuple[str, ...]
    read: Reader
    layout: Layout
    begin: Reader | None = None
    head: str = ""
    dropped: tuple[str, ...] = ()
    specials: tuple[str, ...] = ()
