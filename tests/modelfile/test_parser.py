"""The parser: golden cases, and what they leave open: encodings, places in errors, quotes, odd characters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidModelfile
from corral.modelfile.parser import Command, Modelfile, parse_modelfile

GOLDEN = Path(__file__).parents[1] / "golden" / "modelfiles.jsonl"
CASES = [case for case in map(json.loads, GOLDEN.open(encoding="utf-8")) if case["kind"] == "parse"]
ACCEPTED = [case for case in CASES if "expect" in case]
REFUSED = [case for case in CASES if "error" in case]

NOTES = "FROM smol\r\n# café ☕ notes\r\nSYSTEM Tu es un café ☕.\r\n"


def golden_form(command: Command) -> dict[str, str]:
    """A command as the golden file writes it."""
    if command.keyword == "message":
        return {"name": "message", "args": f"{command.argument}: {command.value}"}
    name = {"from": "model", "parameter": command.argument}.get(command.keyword, command.keyword)
    return {"name": name, "args": command.value}


def value_of(text: str) -> str:
    """The value of the second command of a file that starts with FROM."""
    return parse_modelfile(f"FROM m\n{text}").commands[1].value


def refusal(data: bytes | str) -> InvalidModelfile:
    """The error that a file is refused with."""
    with pytest.raises(InvalidModelfile) as caught:
        parse_modelfile(data)
    return caught.value


@pytest.mark.parametrize("case", ACCEPTED, ids=[case["id"] for case in ACCEPTED])
@pytest.mark.parametrize("encode", [str, str.encode], ids=["text", "bytes"])
def test_commands_when_the_golden_file_accepts(case: dict[str, Any], encode: Any) -> None:
    parsed = parse_modelfile(encode(case["input"]))
    assert [golden_form(command) for command in parsed.commands] == case["expect"]["commands"]


@pytest.mark.parametrize("case", REFUSED, ids=[case["id"] for case in REFUSED])
def test_error_when_the_golden_file_refuses(case: dict[str, Any]) -> None:
    error = refusal(case["input"])
    original = re.sub(r"^\(line \d+\): ", "", case["error"])
    # An end of file is worded by what is missing there; every other text stays in ours.
    assert original in error.message or original == "unexpected EOF"


def test_line_when_a_word_is_followed_by_its_line_end() -> None:
    # The original names line 3, where it noticed; the word stands on line 2.
    error = refusal("FROM m\nSYSTEM\n")
    assert (error.line, error.column) == (2, 1)
    assert "a space and a value must follow SYSTEM" in error.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_when_encoded(encoding: str) -> None:
    parsed = parse_modelfile(NOTES.encode(encoding))
    assert parsed == Modelfile((Command("from", "", "smol"), Command("system", "", "Tu es un café ☕.")))
    assert [command.line for command in parsed.commands] == [1, 3]


def test_text_when_utf16_is_big_endian() -> None:
    parsed = parse_modelfile(b"\xfe\xff" + NOTES.encode("utf-16-be"))
    assert parsed.commands[1].value == "Tu es un café ☕."


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [NOTES, "FROM smol\n"], ids=["accents", "ascii"])
def test_error_when_utf16_has_no_mark(encoding: str, text: str) -> None:
    error = refusal(text.encode(encoding))
    assert "not UTF-8 and looks like UTF-16" in error.message
    assert "\n" not in error.message


def test_nuls_when_inside_quotes() -> None:
    text = "FROM m\nSYSTEM " + '"' + "a\0" * 300 + '"'
    assert parse_modelfile(text.encode()).commands[1].value == "a\0" * 300


def test_place_when_a_byte_is_not_utf8() -> None:
    error = refusal("FROM m\r\nSYSTEM é".encode() + b"\xe9t\xe9\n")
    assert (error.line, error.column) == (2, 9)
    assert "0xe9" in error.message


def test_place_when_utf16_breaks_off() -> None:
    error = refusal("FROM m\n".encode("utf-16") + b"S")
    assert (error.line, error.column) == (2, 1)


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_lines_when_newlines_differ(newline: str) -> None:
    text = newline.join(["# one", "FROM m", "", '  SYSTEM """a', 'b"""', "MESSAGE user hi", ""])
    commands = parse_modelfile(text).commands
    assert [(command.line, command.column) for command in commands] == [(2, 1), (4, 3), (6, 1)]
    assert commands[1].value == f"a{newline}b"


def test_commands_when_only_their_places_differ() -> None:
    assert parse_modelfile("FROM m") == parse_modelfile("\n\n  FROM m")
    assert parse_modelfile("FROM m") != parse_modelfile("FROM n")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("SISTEM x", "SYSTEM"),
        ("PARAMETRE temperature 1", "PARAMETER"),
        ("1FROM x", "FROM"),
        ("\ufeffFROM x", "FROM"),
    ],
)
def test_hint_when_a_word_is_misspelt(text: str, near: str) -> None:
    error = refusal(f"FROM m\n {text}\n")
    assert error.message.endswith(f"did you mean {near}?")
    assert (error.line, error.column) == (2, 2)


@pytest.mark.parametrize("text", ["FROM", "FROM: m", "FROM\u00a0m", "FR", "FROM:yaml m", "ſystem x"])
def test_error_when_no_blank_follows_a_command(text: str) -> None:
    assert 'a command must be one of "from"' in refusal(text).message


@pytest.mark.parametrize(
    "text", ["PARAMETER <|eot_id|>", "PARAMETER stop", "PARAMETER st.op x", "PARAMETER ", "PARAMETER \nx y"]
)
def test_error_when_a_parameter_lacks_name_or_value(text: str) -> None:
    error = refusal(f"FROM smol\nPARAMETER stop <a>\n{text}\nPARAMETER temperature 0.5\n")
    assert "PARAMETER takes a name and a value" in error.message
    assert (error.line, error.column) == (3, 11)


@pytest.mark.parametrize("text", ["MESSAGE user", "MESSAGE user: hi", "MESSAGE ", 'MESSAGE "hi"'])
def test_error_when_a_message_lacks_role_or_text(text: str) -> None:
    assert "MESSAGE takes a role and a text" in refusal(f"FROM m\n{text}").message


@pytest.mark.parametrize("role", ["User", "tool", "SYSTEM"])
def test_error_when_a_role_is_unknown(role: str) -> None:
    error = refusal(f"FROM m\nMESSAGE {role} hi")
    assert f'must be one of "system", "user", or "assistant", not {role!r}' in error.message


def test_arguments_when_aligned_in_columns() -> None:
    command = parse_modelfile("FROM m\nPARAMETER   top_k \t 20").commands[1]
    assert (command.argument, command.value) == ("top_k", "20")


@pytest.mark.parametrize("quote", ['"', '"""'])
def test_line_when_a_quote_is_never_closed(quote: str) -> None:
    error = refusal(f"FROM m\nSYSTEM  {quote}never\n\nclosed\n")
    assert "the quote opened on line 2 is never closed" in error.message
    assert (error.line, error.column) == (2, 9)


@pytest.mark.parametrize("text", ['"', '"""', '""""', '"""""', '"a" b', '"""a"', '"""a""" b'])
def test_error_when_a_quote_does_not_end_its_line(text: str) -> None:
    assert "never closed" in refusal(f"FROM m\nSYSTEM {text}\n").message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('""""""', ""),
        ('"a" b\nc"', 'a" b\nc'),
        ('"""a""" b\n"""', 'a""" b\n'),
        ('"a\n"', "a\n"),
        ('"\n"', "\n"),
        ('" \t"  ', " \t"),
        ("'a'", "'a'"),
        ("a # b", "a # b"),
        ("a\\nb", "a\\nb"),
        ("# a", "# a"),
    ],
)
def test_value_when_quoted(text: str, value: str) -> None:
    assert value_of(f"SYSTEM {text}\n") == value
    assert value_of(f"SYSTEM {text}") == value


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def test_joiners_when_quoted_or_bare() -> None:
    assert value_of(f'SYSTEM "{FAMILY}\u00a0"') == f"{FAMILY}\u00a0"
    assert value_of(f'SYSTEM \u200b"{FAMILY}"') == FAMILY
    assert value_of(f'SYSTEM a "{FAMILY}"') == 'a "\U0001f468\U0001f469\U0001f467"'
    assert value_of(f"SYSTEM {FAMILY}\tx") == "\U0001f468\U0001f469\U0001f467\tx"


def test_comment_when_between_commands() -> None:
    text = 'FROM m\n# "open\n  # SYSTEM no\nSYSTEM yes # not a comment\n'
    assert [command.value for command in parse_modelfile(text).commands] == ["m", "yes # not a comment"]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (r'SYSTEM:json "a\r\n\"\"\"\u0000"', Command("system", "", 'a\r\n"""\0')),
        ('Message:JSON user  "hi" ', Command("message", "user", "hi")),
        (r'PARAMETER:json stop "\t"', Command("parameter", "stop", "\t")),
    ],
)
def test_value_when_written_as_json(text: str, command: Command) -> None:
    assert parse_modelfile(f"FROM m\n{text}\nSYSTEM end").commands[1] == command


@pytest.mark.parametrize("text", ["", "1", "bare", '["a"]', '"a', '"a" b', '"a\nb"', "[" * 100_000])
def test_error_when_json_is_no_string(text: str) -> None:
    error = refusal(f"FROM m\nSYSTEM:json {text}\n")
    assert "SYSTEM:json takes one JSON string" in error.message
    assert (error.line, error.column) == (2, 13)


def test_columns_when_json_form_is_refused_before_its_blank() -> None:
    assert "a space and a value must follow SYSTEM" in refusal("FROM m\nSYSTEM:json").message


def test_length_when_a_quote_spans_many_lines() -> None:
    # Quadratic work over this many lines would take minutes.
    licence = "line of a licence\n" * 200_000
    assert value_of(f'LICENSE """{licence}"""\n') == licence
