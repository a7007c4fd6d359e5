"""Answers as models write them, whole and split anywhere: all ways give the same text, thinking and calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from corral.modelfile.output.pieces import CallPiece, Piece, TextPiece, ThinkingPiece
from corral.modelfile.output.syntax import GENERIC, OutputParser, find_syntax
from hypothesis import given, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).parent.parent / "golden" / "output"
TOOLS: list[dict[str, Any]] = json.loads((FOLDER / "tools.json").read_text())
FILES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json")) if path.stem != "tools"}
CASES = [(name, case) for name, file in FILES.items() for case in file["cases"]]
each_case = pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}: {case['title']}" for name, case in CASES])


def make_parser(name: str, case: dict[str, Any], forced: bool = False) -> OutputParser:
    syntax = GENERIC if name == "generic" else find_syntax(FILES[name]["template"], FILES[name]["is_go"])
    tools = TOOLS if case.get("offered", True) else []
    return syntax.parser(tools, in_thinking=case.get("in_thinking", False), forced=forced)


def join(pieces: Iterable[Piece]) -> dict[str, Any]:
    joined: dict[str, Any] = {"text": "", "thinking": "", "calls": []}
    for piece in pieces:
        if isinstance(piece, CallPiece):
            if piece.name:
                assert piece.index == len(joined["calls"])
                joined["calls"].append({"name": piece.name, "arguments": ""})
            assert piece.index == len(joined["calls"]) - 1
            joined["calls"][-1]["arguments"] += piece.arguments
        else:
            assert piece.text
            joined["thinking" if isinstance(piece, ThinkingPiece) else "text"] += piece.text
    for call in joined["calls"]:
        call["arguments"] = json.loads(call["arguments"])
    return joined


def parse(parser: OutputParser, parts: Sequence[str]) -> dict[str, Any]:
    return join([piece for part in parts for piece in parser.feed(part)] + parser.finish())


def expected(case: dict[str, Any]) -> dict[str, Any]:
    return {key: case[key] for key in ("text", "thinking", "calls")}


def split_at(text: str, borders: Iterable[int]) -> list[str]:
    places = [0, *sorted(borders), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


@each_case
def test_answer_is_read_whole(name: str, case: dict[str, Any]) -> None:
    assert parse(make_parser(name, case), [case["answer"]]) == expected(case)


@each_case
def test_answer_is_read_character_by_character(name: str, case: dict[str, Any]) -> None:
    assert parse(make_parser(name, case), list(case["answer"])) == expected(case)


@given(st.sampled_from(CASES), st.data())
@settings(max_examples=300, deadline=None)
def test_answer_is_read_split_anywhere(row: tuple[str, dict[str, Any]], data: st.DataObject) -> None:
    name, case = row
    borders = data.draw(st.lists(st.integers(0, len(case["answer"])), max_size=6))
    assert parse(make_parser(name, case), split_at(case["answer"], borders)) == expected(case)


@pytest.mark.parametrize("name", FILES)
def test_text_leaves_at_once_where_it_cannot_be_a_call(name: str) -> None:
    parser = make_parser(name, {})
    parser.feed("Hello, ")
    assert parser.feed("world") == [TextPiece("world")] or name == "functionary-v3.2"
