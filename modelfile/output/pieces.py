"""What an answer consists of once it is read: text, thinking, and tool calls."""

from __future__ import annotations

import msgspec


class TextPiece(msgspec.Struct, frozen=True):
    text: str


class ThinkingPiece(msgspec.Struct, frozen=True):
    text: str


class CallPiece(msgspec.Struct, frozen=True):
    """A tool call or a part of one.

    Calls of an answer are numbered from 0. The first piece of an `index` has the name, later ones have ""; the
    `arguments` of one index join to the text of a JSON object, unless the answer was cut off inside it.
    """

    index: int
    name: str
    arguments: str


Piece = TextPiece | ThinkingPiece | CallPiece
