"""Harmony, as GPT-OSS writes: an answer of messages, each with a header that tells its channel and its recipient."""

from __future__ import annotations

import re

from .call_format import CallFormat, Layout
from .calls import Calls
from .cursor import Cursor, Malformed, Markers, Steps
from .pieces import Piece, TextPiece, ThinkingPiece

_START, _CHANNEL, _MESSAGE, _CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_END, _CALL, _RETURN = "<|end|>", "<|call|>", "<|return|>"
_SPECIALS = (_START, _CHANNEL, _MESSAGE, _CONSTRAIN, _END, _CALL, _RETURN)
_HEADER_END = Markers((_MESSAGE,))
_BODY_END = Markers((_END, _CALL, _RETURN, _START, _CHANNEL))
_HEADERS = (_START, _CHANNEL)
_MAX_HEADER_CHARS = 400

_CHANNEL_NAME = re.compile(re.escape(_CHANNEL) + r"\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
THINKING = (f"{_CHANNEL}analysis{_MESSAGE}", _END)


def read_answer(cursor: Cursor, calls: Calls, in_thinking: bool, has_tools: bool) -> Steps[None]:
    """Read a whole answer. Analysis is thinking, a message for an offered tool is a call, anything else is text."""
    if in_thinking:
        yield from cursor.literal(THINKING[0])
        marker = yield from _read_body(cursor, ThinkingPiece)
    else:
        marker = yield from _read_start(cursor)
    while not cursor.is_done:
        cursor.mark()
        if marker in _HEADERS:
            marker = yield from _read_message(cursor, calls, marker, has_tools)
            continue
        yield from cursor.blanks()
        marker = yield from cursor.literal(*_HEADERS)
        if not marker:
            marker = yield from _read_body(cursor, TextPiece)


def _read_start(cursor: Cursor) -> Steps[str]:
    """The first marker, and the text before it: there is some where a model leaves the form, or a grammar does.

    A recipient may stand before the first marker, as the prompt may end after `assistant`.
    """
    yield from cursor.blanks()
    if (yield from cursor.literal("to=")):
        cursor.at -= len("to=")
        return _START
    return (yield from _read_body(cursor, TextPiece))


def _read_message(cursor: Cursor, calls: Calls, marker: str, has_tools: bool) -> Steps[str]:
    """Read a message from behind the first marker of its header; the marker behind it."""
    try:
        header, _ = yield from cursor.until(_HEADER_END, _MAX_HEADER_CHARS)
    except Malformed:
        yield TextPiece(marker + cursor.recorded())
        return ""
    header = marker + header
    channel = _CHANNEL_NAME.search(header)
    recipient = _RECIPIENT.search(header)
    if recipient and has_tools:
        return (yield from _read_call(cursor, calls, header, recipient[1].removeprefix("functions.")))
    is_thinking = channel is not None and channel[1] == "analysis" and not recipient
    return (yield from _read_body(cursor, ThinkingPiece if is_thinking else TextPiece))


def _read_call(cursor: Cursor, calls: Calls, header: str, name: str) -> Steps[str]:
    cursor.mark()
    try:
        yield from calls.read_arguments(name)
    except Malformed:
        body = cursor.recorded()
        if not calls.is_partial:
            yield TextPiece(header + _MESSAGE + body)
        calls.is_partial = False
        return (yield from _read_body(cursor, TextPiece))
    yield from cursor.blanks()
    return (yield from cursor.literal(*_BODY_END.texts))


def _read_body(cursor: Cursor, make: type[TextPiece] | type[ThinkingPiece]) -> Steps[str]:
    """Let text go as it comes, up to a marker; that marker, or "" at the end."""
    while True:
        text, marker = yield from cursor.passage(_BODY_END)
        if text:
            piece: Piece = make(text)
            yield piece
        if marker or cursor.is_done:
            return marker


def _read_nothing(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    """Calls are read as part of the whole answer."""
    raise Malformed
    yield


HARMONY = CallFormat(
    "harmony",
    (_CHANNEL, _MESSAGE),
    (),
    _read_nothing,
    Layout(f"{_CHANNEL}commentary to=functions.", f" {_CONSTRAIN}json{_MESSAGE}", "", between=None),
    specials=_SPECIALS,
)
