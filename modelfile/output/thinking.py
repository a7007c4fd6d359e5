"""Thinking in answers: the tags of a template, and the block between them that an answer may begin with."""

from __future__ import annotations

from typing import NamedTuple

from .cursor import Cursor, Markers, Steps
from .pieces import ThinkingPiece


class ThinkingTags(NamedTuple):
    """The texts around a model's thinking."""

    open: str
    close: str


# What the templates of published models use. The first whose tags a template holds is the one.
KNOWN_TAGS = (
    ThinkingTags("<|START_THINKING|>", "<|END_THINKING|>"),
    ThinkingTags("[THINK]", "[/THINK]"),
    ThinkingTags("<seed:think>", "</seed:think>"),
    ThinkingTags("◁think▷", "◁/think▷"),
    ThinkingTags("<think>", "</think>"),
    ThinkingTags("<thinking>", "</thinking>"),
    ThinkingTags("<thought>", "</thought>"),
    ThinkingTags("<reasoning>", "</reasoning>"),
    ThinkingTags("Here is my thought process:", "Here is my response:"),
)


def find_tags(template: str) -> ThinkingTags | None:
    """The tags that a template holds, either of a pair: many write one and split at the other."""
    return next((tags for tags in KNOWN_TAGS if tags.open in template or tags.close in template), None)


def read_thinking(cursor: Cursor, tags: ThinkingTags, in_thinking: bool) -> Steps[str]:
    """Read the block of thinking at the beginning of an answer, and the blanks around it.

    Returns the blanks that stand there instead, when there is no block: they belong to the answer.
    """
    blanks = yield from cursor.blanks()
    found = yield from cursor.literal(tags.open)
    if not found and not in_thinking:
        return blanks
    if found:
        yield from cursor.blanks()
    close = Markers((tags.close,))
    while not cursor.is_done:
        text, marker = yield from cursor.passage(close)
        if text:
            yield ThinkingPiece(text)
        if marker:
            yield from cursor.blanks()
            break
    return ""
