"""Word wrap for text that streams in: a word waits until it is whole, then goes on the line or on the next one."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len

_PIECES = re.compile(r"\n|[ \t]+|[^ \t\n]+")


class WordWrapper:
    """Turns pieces of text into text for a terminal whose width, in cells, `columns` gives at any time."""

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns
        self._column = 0
        self._blanks = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        shown = ""
        for piece in _PIECES.findall(text):
            if piece[0] in " \t\n":
                shown += self._end_word() + self._take_blank(piece)
            else:
                self._word += piece
        return shown

    def flush(self) -> str:
        """What is left, at the end."""
        shown = self._end_word() + self._blanks
        self._blanks = ""
        return shown

    def _take_blank(self, piece: str) -> str:
        if piece != "\n":
            self._blanks += piece
            return ""
        self._column, self._blanks = 0, ""
        return "\n"

    def _end_word(self) -> str:
        if not self._word:
            return ""
        word, blanks = self._word, self._blanks
        self._word = self._blanks = ""
        width = cell_len(word)
        if self._column and self._column + len(blanks) + width > self._columns():
            self._column = width
            return "\n" + word
        self._column += len(blanks) + width
        return blanks + word
