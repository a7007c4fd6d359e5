"""Any text goes through every format's parser: nothing is raised, nothing is lost, no border changes the result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corral.modelfile.output.bare_calls import GENERIC, bare_format
from corral.modelfile.output.call_format import CallFormat
from corral.modelfile.output.pieces import CallPiece, TextPiece, ThinkingPiece
from corral.modelfile.output.syntax import OutputSyntax, ThinkingTags
from corral.modelfile.output.table import FORMATS
from hypothesis import given, settings
from hypothesis import strategies as st

TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}},
    {"type": "function", "function": {"name": "g.h"}},
]
ROWS = (*FORMATS, GENERIC, bare_format(("name", "parameters")))
# These leave out text that says nothing to a user: headers, and tags around answers.
LOSSY = {"harmony", "command-r7b", "functionary-v3.2"}
THINKING = ThinkingTags("<think>", "</think>")
COMMON = (
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\\",
    '"name"',
    '"arguments"',
    '"parameters"',
    '"f"',
    '{"name": "f", "arguments": {"a": 1}}',
    '{"name": "f", "arguments": {',
    '{"a": 1}',
    "f",
    "g.h",
    "f\n",
    "function",
    "```json\n",
    "```",
    "functions.f",
    " to=functions.f",
    "analysis",
    "final",
    ".call(a=1)",
    "(",
    " ",
    "\n",
    "é\ud83d",
    "all\n",
    ">",
    "=",
    "<",
    "\\ud800",
    "1e999",
    "NaN",
    "null",
    "<think>",
    "</think>",
)


def texts(row: CallFormat) -> st.SearchStrategy[str]:
    layout = row.layout
    tags = layout.arguments
    marks = [layout.begin, layout.before, layout.middle, layout.after, layout.end, *row.markers, *row.specials]
    marks += [*row.dropped, *((tags.open, tags.middle, tags.close) if tags else ())]
    fragments = st.sampled_from([*filter(None, marks), *COMMON])
    return st.lists(fragments | st.text(max_size=5), max_size=25).map("".join)


def read(row: CallFormat, parts: list[str], forced: bool, thinking: ThinkingTags | None) -> tuple[Any, ...]:
    parser = OutputSyntax(thinking, row).parser(TOOLS, forced=forced)
    text, thought, calls = "", "", []
    for piece in [piece for part in parts for piece in parser.feed(part)] + parser.finish():
        if isinstance(piece, CallPiece):
            if piece.name:
                assert piece.name in ("f", "g.h")
                calls.append("")
            assert piece.index == len(calls) - 1
            calls[-1] += piece.arguments
        else:
            assert piece.text
            text += piece.text if isinstance(piece, TextPiece) else ""
            thought += piece.text if isinstance(piece, ThinkingPiece) else ""
    return text, thought, calls


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_nothing_is_lost_or_raised(row: CallFormat, data: st.DataObject) -> None:
    answer = data.draw(texts(row))
    for thinking in (None, THINKING):
        whole = read(row, [answer], False, thinking)
        assert read(row, list(answer), False, thinking) == whole
        text, thought, calls = whole
        assert all(isinstance(json.loads(call), dict) for call in calls)
        if (
            not calls
            and not thought
            and not (thinking and answer.lstrip().startswith("<think>"))
            and row.name not in LOSSY
        ):
            assert text == answer
        forced = read(row, [answer], True, thinking)
        assert read(row, list(answer), True, thinking) == forced
