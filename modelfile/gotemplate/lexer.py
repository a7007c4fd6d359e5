"""The tokens of a Go template, made one by one as the parser asks, so that the first error in the text is the one told.

Trim markers and comments end here: the parser never sees them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from .nodes import invalid

_SPACES = " \t\r\n"
_SPACE_RUN = re.compile(r"[ \t\r\n]+")
_QUOTED = {
    '"': (re.compile(r'"(?:\\[^\n]|[^"\\\n])*"'), "unterminated quoted string"),
    "'": (re.compile(r"'(?:\\[^\n]|[^'\\\n])*'"), "unterminated character constant"),
    "`": (re.compile(r"`[^`]*`"), "unterminated raw quoted string"),
}
# As loose as Go's scanner: what it lets through and is no number, the parser refuses.
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?"
    r"|0[bB][01_]*(?:\.[01_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
KEYWORDS = frozenset("block break continue define else end if nil range template with".split())


class Kind(Enum):
    TEXT = auto()
    LEFT = auto()
    RIGHT = auto()
    SPACE = auto()
    FIELD = auto()
    VARIABLE = auto()
    IDENTIFIER = auto()
    KEYWORD = auto()
    DOT = auto()
    BOOL = auto()
    CHAR = auto()
    STRING = auto()
    NUMBER = auto()
    ASSIGN = auto()
    DECLARE = auto()
    PIPE = auto()
    OPEN = auto()
    CLOSE = auto()
    OTHER = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    position: int
    text: str


def tokens(source: str) -> Iterator[Token]:
    """All tokens, the last of kind END. Errors: InvalidTemplate with the place."""
    position = 0
    while (left := source.find("{{", position)) >= 0:
        trims = _trims_left(source, left + 2)
        text = source[position:left].rstrip(_SPACES) if trims else source[position:left]
        if text:
            yield Token(Kind.TEXT, position, text)
        inside = left + (4 if trims else 2)
        if source.startswith("/*", inside):
            position = _skip_comment(source, inside)
        else:
            yield Token(Kind.LEFT, left, "{{")
            position = yield from _action(source, inside)
    if position < len(source):
        yield Token(Kind.TEXT, position, source[position:])
    yield Token(Kind.END, len(source), "end of the template")


def _trims_left(source: str, position: int) -> bool:
    return source[position : position + 1] == "-" and source[position + 1 : position + 2] in tuple(_SPACES)


def _right_end(source: str, position: int) -> int | None:
    """Where the text goes on after a right delimiter at `position`; None when there is none."""
    if source[position : position + 1] in tuple(_SPACES) and source.startswith("-}}", position + 1):
        blank = _SPACE_RUN.match(source, position + 4)
        return blank.end() if blank else position + 4
    return position + 2 if source.startswith("}}", position) else None


def _skip_comment(source: str, position: int) -> int:
    close = source.find("*/", position + 2)
    if close < 0:
        raise invalid(source, position, "unclosed comment")
    end = _right_end(source, close + 2)
    if end is None:
        raise invalid(source, close, "comment ends before closing delimiter")
    return end


def _action(source: str, position: int) -> Generator[Token, None, int]:
    """The tokens up to the right delimiter; returns where the text goes on."""
    start, depth = position, 0
    while (end := _right_end(source, position)) is None:
        if position >= len(source):
            raise invalid(source, start, "unclosed action")
        token = _next_token(source, position)
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        if depth < 0:
            raise invalid(source, position, "unexpected right paren")
        yield token
        position += len(token.text)
    if depth:
        raise invalid(source, position, "unclosed left paren")
    yield Token(Kind.RIGHT, position, "}}")
    return end


_SINGLE = {"=": Kind.ASSIGN, "|": Kind.PIPE, "(": Kind.OPEN, ")": Kind.CLOSE}


def _next_token(source: str, position: int) -> Token:
    first = source[position]
    following = source[position + 1 : position + 2]
    if first in _SPACES:
        return Token(Kind.SPACE, position, _blank(source, position))
    if first in _SINGLE:
        return Token(_SINGLE[first], position, first)
    if first == ":":
        if following != "=":
            raise invalid(source, position, "expected :=")
        return Token(Kind.DECLARE, position, ":=")
    if first in _QUOTED:
        return _quoted(source, position)
    if first == "$" or (first == "." and not _is_ascii_digit(following)):
        return _field_or_variable(source, position)
    if first in "+-." or _is_ascii_digit(first):
        return _number(source, position)
    if _is_word(first):
        return _word(source, position)
    if first.isascii() and first.isprintable():
        return Token(Kind.OTHER, position, first)
    raise invalid(source, position, f"unrecognized character in action: {first!a}")


def _blank(source: str, position: int) -> str:
    """A run of blanks, less the one that belongs to a trimming right delimiter."""
    found = _SPACE_RUN.match(source, position)
    assert found is not None
    end = found.end() - source.startswith("-}}", found.end())
    return source[position:end]


def _quoted(source: str, position: int) -> Token:
    pattern, message = _QUOTED[source[position]]
    found = pattern.match(source, position)
    if found is None:
        raise invalid(source, position, message)
    return Token(Kind.CHAR if source[position] == "'" else Kind.STRING, position, found.group())


def _field_or_variable(source: str, position: int) -> Token:
    end = _word_end(source, position + 1)
    text = source[position:end]
    _check_terminator(source, end)
    if text == ".":
        return Token(Kind.DOT, position, text)
    return Token(Kind.VARIABLE if text[0] == "$" else Kind.FIELD, position, text)


def _number(source: str, position: int) -> Token:
    end = _number_end(source, position)
    if source[end : end + 1] in ("+", "-"):
        end = _number_end(source, end)
        if source[end - 1] != "i":
            raise invalid(source, position, f"bad number syntax: {source[position:end]}")
    return Token(Kind.NUMBER, position, source[position:end])


def _number_end(source: str, position: int) -> int:
    found = _NUMBER.match(source, position)
    assert found is not None
    if _is_word(source[found.end() : found.end() + 1]):
        raise invalid(source, position, f"bad number syntax: {source[position : found.end() + 1]}")
    return found.end()


def _word(source: str, position: int) -> Token:
    end = _word_end(source, position)
    text = source[position:end]
    _check_terminator(source, end)
    if text in KEYWORDS:
        return Token(Kind.KEYWORD, position, text)
    return Token(Kind.BOOL if text in ("true", "false") else Kind.IDENTIFIER, position, text)


def _word_end(source: str, position: int) -> int:
    while _is_word(source[position : position + 1]):
        position += 1
    return position


def _check_terminator(source: str, position: int) -> None:
    following = source[position : position + 1]
    if following and following not in _SPACES + ".,|:()" and not source.startswith("}}", position):
        raise invalid(source, position, f"bad character {following!a}")


def _is_word(character: str) -> bool:
    if character.isascii():
        return character == "_" or character.isalnum()
    return unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd")


def _is_ascii_digit(character: str) -> bool:
    return "0" <= character <= "9"
