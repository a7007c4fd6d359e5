"""Rows for calls whose name stands before the JSON of the arguments: Mistral, DeepSeek, Functionary, Kimi."""

from __future__ import annotations

import re

from .call_format import CallFormat, Layout
from .calls import Calls
from .cursor import Cursor, Malformed, Markers, Steps
from .json_calls import read_calls
from .tagged_calls import json_layout

_MAX_NAME_CHARS = 200
_TOOL_CALLS, _ARGS, _CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_MISTRAL_HEAD = Markers((_ARGS, _CALL_ID, "{"))


def _read_mistral(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    """A list of objects, or a name and its arguments, with an id between them in one version."""
    yield from cursor.blanks()
    if (yield from cursor.peek()) in ("[", "{"):
        yield from read_calls(cursor, calls)
        return
    name, found = yield from cursor.until(_MISTRAL_HEAD, _MAX_NAME_CHARS)
    calls.parameters(name.strip())
    if found == _CALL_ID:
        _, found = yield from cursor.until(_MISTRAL_HEAD, _MAX_NAME_CHARS)
    if found == "{":
        cursor.at -= 1
    yield from calls.read_arguments(name.strip())


MISTRAL = CallFormat(
    "mistral",
    (_TOOL_CALLS,),
    (_TOOL_CALLS,),
    _read_mistral,
    json_layout(_TOOL_CALLS + " ", is_list=True),
    specials=(_TOOL_CALLS, _ARGS, _CALL_ID),
)
MISTRAL_NAMED = CallFormat(
    "mistral-named",
    (_TOOL_CALLS, _ARGS),
    (_TOOL_CALLS,),
    _read_mistral,
    Layout(_TOOL_CALLS, _ARGS, "", between=""),
    specials=(_TOOL_CALLS, _ARGS, _CALL_ID),
)

# DeepSeek's bars are full width, and its blanks are U+2581.
_CALLS_BEGIN, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL_BEGIN, _CALL_END, _SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
_DEEPSEEK_SPECIALS = (_CALLS_BEGIN, _CALLS_END, _CALL_BEGIN, _CALL_END, _SEP)
_SEP_MARKER, _LINE_END = Markers((_SEP,)), Markers(("\n",))


def _read_deepseek(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    """`function`, a separator, the name and a block of JSON (R1, V3), or the name, a separator and JSON (V3.1)."""
    if marker == _CALLS_BEGIN:
        yield from cursor.blanks()
        yield from cursor.expect(_CALL_BEGIN)
    name, _ = yield from cursor.until(_SEP_MARKER, _MAX_NAME_CHARS)
    is_block = (yield from cursor.peek()) != "{"
    if is_block:
        name, _ = yield from cursor.until(_LINE_END, _MAX_NAME_CHARS)
        calls.parameters(name.strip())
        yield from cursor.blanks()
        yield from cursor.literal("```json", "```")
    yield from calls.read_arguments(name.strip())
    if is_block:
        yield from cursor.closer("```")
    yield from cursor.closer(_CALL_END)
    yield from cursor.closer(_CALLS_END)


DEEPSEEK_R1 = CallFormat(
    "deepseek-r1",
    (_SEP, "```json"),
    (_CALLS_BEGIN, _CALL_BEGIN),
    _read_deepseek,
    Layout(f"{_CALL_BEGIN}function{_SEP}", "\n```json\n", f"\n```{_CALL_END}", begin=_CALLS_BEGIN, end=_CALLS_END),
    specials=_DEEPSEEK_SPECIALS,
)
DEEPSEEK_V31 = CallFormat(
    "deepseek-v3.1",
    (_SEP,),
    (_CALLS_BEGIN, _CALL_BEGIN),
    _read_deepseek,
    Layout(_CALL_BEGIN, _SEP, _CALL_END, begin=_CALLS_BEGIN, end=_CALLS_END, between=""),
    specials=_DEEPSEEK_SPECIALS,
)

_FUNCTION_HEAD = Markers((">",))


def _read_function_tag(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    name, _ = yield from cursor.until(_FUNCTION_HEAD, _MAX_NAME_CHARS)
    yield from calls.read_arguments(name)
    yield from cursor.closer("</function>")


FUNCTIONARY_TAG = CallFormat(
    "functionary-v3.1",
    ("<function=",),
    ("<function=",),
    _read_function_tag,
    Layout("<function=", ">", "</function>"),
)


_TO_USER = "all\n"


def _read_recipient(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    """The line that says whom a text is for: `all` is the user, others are tools."""
    if (yield from cursor.literal(_TO_USER)):
        cursor.mark()
        return
    name, _ = yield from cursor.until(_LINE_END, _MAX_NAME_CHARS)
    yield from calls.read_arguments(name.strip())


FUNCTIONARY = CallFormat(
    "functionary-v3.2",
    (">>>",),
    (">>>",),
    _read_recipient,
    Layout("", "\n", "", between="\n>>>"),
    begin=_read_recipient,
    head=_TO_USER,
)

_KIMI_BEGIN, _KIMI_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_KIMI_CALL, _KIMI_ARGUMENTS, _KIMI_CALL_END = (
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
)
_KIMI_HEAD = Markers((_KIMI_ARGUMENTS,))
_KIMI_ID = re.compile(r"\s*(?:functions\.)?(?P<name>.+?)(?::\d+)?\s*")


def _read_kimi(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    if marker == _KIMI_BEGIN:
        yield from cursor.blanks()
        yield from cursor.expect(_KIMI_CALL)
    written, _ = yield from cursor.until(_KIMI_HEAD, _MAX_NAME_CHARS)
    match = _KIMI_ID.fullmatch(written)
    if not match:
        raise Malformed
    yield from calls.read_arguments(match["name"])
    yield from cursor.closer(_KIMI_CALL_END)
    yield from cursor.closer(_KIMI_END)


KIMI = CallFormat(
    "kimi",
    (_KIMI_CALL, _KIMI_ARGUMENTS),
    (_KIMI_BEGIN, _KIMI_CALL),
    _read_kimi,
    Layout(f"{_KIMI_CALL}functions.", f":0{_KIMI_ARGUMENTS}", _KIMI_CALL_END, _KIMI_BEGIN, _KIMI_END, between=""),
    specials=(_KIMI_BEGIN, _KIMI_END, _KIMI_CALL, _KIMI_ARGUMENTS, _KIMI_CALL_END),
)
