"""The writer: golden texts, the form chosen for each value, and that nothing is ever lost on the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidModelfile, InvalidRequest
from corral.modelfile.grammar import COMMANDS, ROLES
from corral.modelfile.parser import Command, Modelfile, parse_modelfile
from corral.modelfile.writer import write_command, write_modelfile
from hypothesis import example, given, settings
from hypothesis import strategies as st

GOLDEN = Path(__file__).parents[1] / "golden" / "modelfiles.jsonl"
CASES = [
    case for case in map(json.loads, GOLDEN.open(encoding="utf-8")) if case["kind"] == "parse" and "expect" in case
]

# What makes quoting hard, so that random texts hold it often.
PIECES = [
    '"',
    '"""',
    "\n",
    "\r",
    "\r\n",
    " ",
    "\t",
    "\0",
    "\u200d",
    "\u00a0",
    "\ufeff",
    "#",
    "FROM x",
    "a",
    "é",
    "😀",
    "\\",
]
VALUES = st.one_of(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.text(max_size=20))


def commands_of(keyword: str) -> st.SearchStrategy[Command]:
    """Commands of one keyword, with any argument and value that it may have."""
    arguments = {
        "parameter": st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True),
        "message": st.sampled_from(ROLES),
    }
    return st.builds(Command, st.just(keyword), arguments.get(keyword, st.just("")), VALUES)


COMMAND_LISTS = st.lists(st.sampled_from(list(COMMANDS)).flatmap(commands_of), max_size=5)
WORDS = ["FROM ", "system ", "\nSYSTEM ", "\nMESSAGE user ", "\nPARAMETER stop ", "\nTEMPLATE:json ", '"\\n"']
FILES = st.lists(st.sampled_from([*PIECES, *WORDS]), max_size=14).map("".join).map("FROM m\n".__add__)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_text_when_the_golden_file_is_written_back(case: dict[str, Any]) -> None:
    assert write_modelfile(parse_modelfile(case["input"]).commands) == case["expect"]["text"]


@settings(max_examples=300, deadline=None)
@given(before=COMMAND_LISTS, model=commands_of("from"), after=COMMAND_LISTS)
@example(before=[], model=Command("from", "", "\ufeff"), after=[Command("system", "", "\0" * 400)])
def test_commands_when_written_and_read(before: list[Command], model: Command, after: list[Command]) -> None:
    commands = (*before, model, *after)
    text = write_modelfile(commands)
    assert parse_modelfile(text) == Modelfile(commands)
    assert parse_modelfile(text.encode()) == Modelfile(commands)


@settings(max_examples=300, deadline=None)
@given(text=FILES)
def test_second_export_when_the_first_is_read(text: str) -> None:
    try:
        parsed = parse_modelfile(text)
    except InvalidModelfile:
        return
    exported = write_modelfile(parsed.commands)
    assert parse_modelfile(exported) == parsed
    assert write_modelfile(parse_modelfile(exported).commands) == exported


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "SYSTEM \n"),
        ("plain", "SYSTEM plain\n"),
        ("tab\there, colon: here", "SYSTEM tab\there, colon: here\n"),
        ('ends with a quote"', 'SYSTEM ends with a quote"\n'),
        ("  outer  ", 'SYSTEM "  outer  "\n'),
        ('"quoted whole"', 'SYSTEM ""quoted whole""\n'),
        ('"half', 'SYSTEM ""half"\n'),
        ('He said "stop".\nFROM nowhere\n# no\n', 'SYSTEM "He said "stop".\nFROM nowhere\n# no\n"\n'),
        ('one "line"\nand more', 'SYSTEM """one "line"\nand more"""\n'),
        ("joined\u200dhere", 'SYSTEM "joined\u200dhere"\n'),
        ('"""a"""\nb', 'SYSTEM:json "\\"\\"\\"a\\"\\"\\"\\nb"\n'),
        ("lone \ud800", 'SYSTEM:json "lone \\ud800"\n'),
    ],
)
def test_form_when_a_value_needs_it(value: str, text: str) -> None:
    assert write_command(Command("system", "", value)) == text
    assert parse_modelfile(f"FROM m\n{text}").commands[1].value == value


def test_argument_when_a_value_is_json() -> None:
    command = Command("message", "user", '"""\n"""\nx')
    assert write_command(command) == 'MESSAGE:json user "\\"\\"\\"\\n\\"\\"\\"\\nx"\n'


@pytest.mark.parametrize(
    "command",
    [
        Command("message", "tool", "x"),
        Command("message", "", "x"),
        Command("parameter", "stop\nFROM evil", "x"),
        Command("system", "user", "x"),
        Command("run", "", "x"),
    ],
)
def test_error_when_the_language_cannot_hold_a_command(command: Command) -> None:
    with pytest.raises(InvalidRequest, match="cannot hold the command"):
        write_command(command)
