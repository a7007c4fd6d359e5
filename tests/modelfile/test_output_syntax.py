"""What templates tell of answers: the row of the table, the tags of thinking, and what a model is told instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidTemplate
from corral.modelfile.output.cursor import Cursor, Malformed, Markers
from corral.modelfile.output.pieces import CallPiece, Piece
from corral.modelfile.output.syntax import GENERIC, OutputSyntax, ThinkingTags, describe_tools, find_syntax
from corral.modelfile.output.table import FORMATS

FOLDER = Path(__file__).parent.parent / "golden" / "output"
TOOLS: list[dict[str, Any]] = json.loads((FOLDER / "tools.json").read_text())
JINJA = [row.name for row in FORMATS if row.name != "llama-3.2"]
GO_CALLS = (
    "{{ range .Messages }}{{ if .ToolCalls }}%s{{ range .ToolCalls }}"
    '{"function": "{{ .Function.Name }}", "args": {{ .Function.Arguments }}}{{ end }}%s{{ end }}{{ end }}'
)


def template(name: str) -> tuple[str, bool]:
    file = json.loads((FOLDER / f"{name}.json").read_text())
    return file["template"], file["is_go"]


@pytest.mark.parametrize("name", JINJA)
def test_row_is_found_by_its_signs(name: str) -> None:
    calls = find_syntax(*template(name)).calls
    assert calls is not None
    assert calls.name == name


def test_llama_without_python_tag_is_found_by_its_keys() -> None:
    calls = find_syntax('{"name": …, "parameters": …} {{ "<|start_header_id|>ipython" }}', False).calls
    assert calls is not None
    assert calls.name == "llama-3.2"


def test_template_without_a_known_format_gets_plain_json() -> None:
    assert find_syntax("{{ tools }} {{ messages }}", False).calls is GENERIC.calls


@pytest.mark.parametrize(
    ("before", "after", "name", "markers"),
    [
        ("<tool_call>\n", "\n</tool_call>", "hermes", ("<tool_call>",)),
        ("[TOOL_CALLS] [", "]", "mistral", ("[TOOL_CALLS]",)),
        ("<|calls|>", "<|/calls|><|im_end|>", "tag", ("<|calls|>",)),
        ("<|im_start|>assistant\n", "<|im_end|>", "bare", ()),
        ("", "", "bare", ()),
    ],
)
def test_go_template_tells_its_tag(before: str, after: str, name: str, markers: tuple[str, ...]) -> None:
    calls = find_syntax(GO_CALLS % (before, after), True).calls
    assert calls is not None
    assert (calls.name, calls.markers) == (name, markers)


def test_keys_of_a_go_template_are_those_of_its_grammar() -> None:
    grammar = find_syntax(GO_CALLS % ("<|calls|>", "<|/calls|>"), True).call_grammar(TOOLS, special_tokens={})
    assert r"<|calls|>{\"function\": \"" in grammar
    assert r"\"args\": " in grammar
    assert "<|/calls|>" in grammar


def test_broken_go_template_is_refused() -> None:
    with pytest.raises(InvalidTemplate):
        find_syntax("{{ if .ToolCalls }}", True)


@pytest.mark.parametrize(
    ("source", "is_go", "tags"),
    [
        ("{{ '<think>\n' }}", False, ThinkingTags("<think>", "</think>")),
        ("{{ content.split('</think>') }}", False, ThinkingTags("<think>", "</think>")),
        ("[THINK]", False, ThinkingTags("[THINK]", "[/THINK]")),
        ("<|channel|><|message|>", False, ThinkingTags("<|channel|>analysis<|message|>", "<|end|>")),
        ("{{ messages }}", False, None),
        ("{{ .Messages }}<think>", True, None),
        (
            "{{ range .Messages }}{{ if .Thinking }}a <mull>{{ .Thinking }}</mull> b{{ end }}{{ end }}",
            True,
            ThinkingTags("<mull>", "</mull>"),
        ),
    ],
)
def test_thinking_tags_are_found(source: str, is_go: bool, tags: ThinkingTags | None) -> None:
    assert find_syntax(source, is_go).thinking == tags


def test_prompt_that_leaves_a_tag_open_starts_in_thinking() -> None:
    syntax = OutputSyntax(ThinkingTags("<think>", "</think>"))
    assert syntax.starts_in_thinking("user: hi\nassistant: <think>\n")
    assert not syntax.starts_in_thinking("user: <think>\nassistant:")
    assert not syntax.starts_in_thinking("assistant: <think>\n\n</think>\n")
    assert not GENERIC.starts_in_thinking("<think>")


def test_specials_are_all_markers() -> None:
    syntax = find_syntax(*template("mistral"))
    assert syntax.specials == {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"}


def test_special_tokens_are_written_as_such() -> None:
    syntax = find_syntax(*template("mistral-named"))
    grammar = syntax.call_grammar(TOOLS[1:2], special_tokens={"[TOOL_CALLS]": 9, "[ARGS]": 32})
    assert "<[9]>" in grammar
    assert "<[32]>" in grammar
    assert "[TOOL_CALLS]" not in grammar


def test_described_tools_are_all_there_with_the_form_that_is_read() -> None:
    described = describe_tools(TOOLS)
    assert all(tool["function"]["name"] in described for tool in TOOLS)
    form = next(line for line in described.splitlines() if '"arguments"' in line and '"parameters"' not in line)
    assert set(json.loads(form)) == {"name", "arguments"}


def test_text_that_was_read_is_let_go() -> None:
    parser = find_syntax(*template("hermes")).parser(TOOLS, forced=True)
    pieces: list[Piece] = parser.feed('<tool_call>{"name": "get_weather", "arguments": {"city": "')
    pieces += [piece for _ in range(100) for piece in parser.feed("abc")]
    assert pieces[2:] == [CallPiece(0, "", "abc")] * 100


def test_search_with_a_limit_reads_the_same_however_text_is_split() -> None:
    rests = set()
    for size in (1, 3, 40):
        cursor = Cursor()
        steps = cursor.until(Markers(("|",)), 10)
        text = "a" * 30 + "|"
        with pytest.raises(Malformed):
            for start in range(0, len(text), size):
                cursor.feed(text[start : start + size])
                next(steps)
        rests.add(cursor.recorded())
    assert rests == {"a" * 10}
