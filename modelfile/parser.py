"""Reads a Modelfile into its commands: bytes to text, then one pass over the text (contract section 14).

Values come out unquoted and otherwise untouched. What they mean is for request.py; writer.py is the way back.
"""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from ..core.errors import InvalidModelfile
from ..core.options import nearest
from .grammar import COMMANDS, JSON_SUFFIX, QUOTES, CommandRow, join_choices

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A file has its first command or comment early, so this much tells text from UTF-16 seen as bytes.
_SNIFFED_BYTES = 256

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BETWEEN_COMMANDS = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_COMMAND = re.compile(rf"([A-Za-z]+)({JSON_SUFFIX})?[ \t]+", re.ASCII | re.IGNORECASE)
_BLANKS = re.compile(r"[ \t]+")
_LETTERS = re.compile(r"[A-Za-z]+")
_TOKEN = re.compile(r"[^ \t\r\n]+")
_MAX_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `keyword` is lower case; `argument` is a parameter's name, a message's role, else "".

    `line` and `column`, from 1, say where the word stands; two commands are equal wherever they stand.
    """

    keyword: str
    argument: str
    value: str
    line: int = field(default=1, compare=False)
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Modelfile:
    """The commands of a file, in its order. At least one is a FROM."""

    commands: tuple[Command, ...]


def parse_modelfile(data: bytes | str) -> Modelfile:
    """Read a Modelfile.

    Bytes are UTF-8, or UTF-16 with a byte order mark. Errors: InvalidModelfile with line and column.
    """
    text = _decode(data) if isinstance(data, bytes) else data.removeprefix("\ufeff")
    commands = tuple(_Scanner(text).commands())
    if not any(command.keyword == "from" for command in commands):
        raise InvalidModelfile("no FROM line: say which model or file this one is made from, as in FROM llama3", 1)
    return Modelfile(commands)


def scan_value(text: str, start: int) -> tuple[str, int] | None:
    """Read the value at `start`: the value without its quotes, and the offset of the line end that completed it.

    A quoted value is complete at the first line end before which its quote closes, so quotes inside need no escapes.
    None when that never happens. The writer asks this function whether a form of a value reads back.
    """
    line_end = _line_end(text, start)
    opened = _opening_quote(text, start, line_end)
    if opened is None:
        return _drop_unprintable(text[start:line_end]).strip(), line_end
    quote = next(quote for quote in QUOTES if text.startswith(quote, opened))
    line_start = opened
    while True:
        # Only this line is looked at: what stood before it was incomplete at its own end, and long texts stay linear.
        end = line_start + len(text[line_start:line_end].rstrip())
        if end - opened >= 2 * len(quote) and text.endswith(quote, opened, end):
            return text[opened + len(quote) : end - len(quote)], line_end
        if line_end == len(text):
            return None
        line_start = line_end + 1
        line_end = _line_end(text, line_start)


def _opening_quote(text: str, start: int, line_end: int) -> int | None:
    """Offset of the quote that opens the value at `start`, or None when the value is bare."""
    opened = text.find('"', start, line_end)
    if opened < 0 or _drop_unprintable(text[start:opened]).strip():
        return None
    return opened


class _Scanner:
    """One pass over a text: skip to a command, read its word, its argument, its value, and again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line_starts = _line_starts(text)

    def commands(self) -> Iterator[Command]:
        """Every command, in order."""
        self._skip(_BETWEEN_COMMANDS)
        while self._at < len(self._text):
            yield self._read_command()
            self._skip(_BETWEEN_COMMANDS)

    def _read_command(self) -> Command:
        start = self._at
        found = _COMMAND.match(self._text, start)
        keyword = found.group(1).lower() if found else ""
        if found is None or keyword not in COMMANDS:
            self._refuse_word()
        self._at = found.end()
        argument = self._read_argument(COMMANDS[keyword])
        value = self._read_json(found.group(0).strip()) if found.group(2) else self._read_value()
        return Command(keyword, argument, value, *_locate(self._line_starts, start))

    def _read_argument(self, row: CommandRow) -> str:
        if row.argument is None:
            return ""
        start = self._at
        argument = self._skip(row.argument)
        if not argument or not self._skip(_BLANKS):
            self._fail(row.usage, start)
        if not row.accepts(argument):
            shown = argument[:_MAX_SHOWN]
            self._fail(f"message role must be one of {join_choices(row.choices)}, not {shown!r}", start)
        return argument

    def _read_value(self) -> str:
        scanned = scan_value(self._text, self._at)
        if scanned is None:
            opened = self._text.index('"', self._at)
            line, _ = _locate(self._line_starts, opened)
            quote = next(quote for quote in QUOTES if self._text.startswith(quote, opened))
            self._fail(f"the quote opened on line {line} is never closed: {quote} must come last on a line", opened)
        value, self._at = scanned
        return value

    def _read_json(self, word: str) -> str:
        line_end = _line_end(self._text, self._at)
        source = self._text[self._at : line_end].strip()
        try:
            # The first character is looked at because the decoder follows nested lists until the stack is full.
            value = json.loads(source) if source.startswith('"') else None
        except ValueError:
            value = None
        if not isinstance(value, str):
            self._fail(f'{word} takes one JSON string on its own line, as in {word} "text"', self._at)
        self._at = line_end
        return value

    def _refuse_word(self) -> NoReturn:
        start = self._at
        word = self._skip(_LETTERS)
        token = (word + self._skip(_TOKEN))[:_MAX_SHOWN]
        choices = join_choices(COMMANDS)
        if word.lower() in COMMANDS:
            self._fail(f"a space and a value must follow {word}; a command must be one of {choices}", start)
        near = nearest(token.lower(), list(COMMANDS))
        hint = f"; did you mean {near.upper()}?" if near else ""
        self._fail(f"{token!r} is not a command; a command must be one of {choices}{hint}", start)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found.group()

    def _fail(self, message: str, offset: int) -> NoReturn:
        raise InvalidModelfile(message, *_locate(self._line_starts, offset))


def _line_starts(text: str) -> list[int]:
    return [0, *(newline.end() for newline in _NEWLINE.finditer(text))]


def _locate(line_starts: list[int], offset: int) -> tuple[int, int]:
    line = bisect_right(line_starts, offset)
    return line, offset - line_starts[line - 1] + 1


def _line_end(text: str, start: int) -> int:
    found = _NEWLINE.search(text, start)
    return found.start() if found else len(text)


def _drop_unprintable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character for character in text if character.isprintable() or character == "\t")


def _decode(data: bytes) -> str:
    mark, encoding = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", "utf-8"))
    if not mark and _looks_like_utf16(data):
        raise InvalidModelfile("the file is not UTF-8 and looks like UTF-16: save it as UTF-8", 1)
    body = data[len(mark) :]
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding)
        place = _locate(_line_starts(before), len(before))
        message = f"byte 0x{body[error.start]:02x} is not valid {encoding.upper()}: save the file as UTF-8"
        raise InvalidModelfile(message, *place) from None


def _looks_like_utf16(data: bytes) -> bool:
    # A Modelfile begins with an ASCII character, which in UTF-16 has a NUL before or behind it.
    for first in (0, 1):
        half = data[first:_SNIFFED_BYTES:2]
        if half[:1] == b"\0" and 4 * half.count(0) >= len(half):
            return True
    return False
