"""Prompts that Go templates make of messages: the shared cases, and the rules that they leave open."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidTemplate
from corral.core.types import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, text_message
from corral.modelfile.gotemplate.prompt import GoPrompt

GOLDEN = Path(__file__).parents[1] / "golden"


USER = [text_message("user", "hi")]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "of <a place>",
        "parameters": {
            "type": "object",
            "$defs": {"x": 1},
            "required": ["place"],
            "properties": {
                "place": {"type": "string", "minLength": 1},
                "days": {"anyOf": [{"type": "integer"}, {"type": ["array", "null"]}], "enum": [1, 2.5]},
            },
        },
    },
}


def _cases() -> list[Any]:
    lines = (GOLDEN / "templates.jsonl").read_text(encoding="utf-8").split("\n")
    cases = [json.loads(line) for line in lines if line]
    return [pytest.param(case, id=case["id"]) for case in cases if case["mode"] == "prompt"]


def _message(raw: dict[str, Any]) -> Message:
    if raw["role"] == "tool":
        return Message("tool", (ToolResult(raw.get("tool_call_id", ""), raw.get("tool_name", ""), raw["content"]),))
    parts: list[Part] = [Thinking(raw["thinking"])] if raw.get("thinking") else []
    parts += [Text(raw["content"])] if raw.get("content") else []
    parts += [Image(base64.b64decode(data)) for data in raw.get("images", [])]
    for call in raw.get("tool_calls", []):
        function = call["function"]
        parts.append(ToolCall(call.get("id", ""), function["name"], function["arguments"]))
    return Message(raw["role"], tuple(parts))


def _render(prompt: GoPrompt, values: dict[str, Any]) -> str:
    think = (values.get("think_level") or values.get("think", False)) if values.get("is_think_set") else None
    if values.get("prompt") and values.get("suffix"):
        return prompt.render_infill(values["prompt"], values["suffix"], think)
    return prompt.render([_message(raw) for raw in values.get("messages", [])], values.get("tools"), think)


@pytest.mark.parametrize("case", _cases())
def test_prompt_when_ollama_was_given_the_same(case: dict[str, Any]) -> None:
    if case.get("error", {}).get("stage") == "parse":
        with pytest.raises(InvalidTemplate):
            GoPrompt(case["template"])
        return
    prompt = GoPrompt(case["template"])
    if "vars" in case:
        assert list(prompt.vars) == case["vars"]
    if "error" in case:
        with pytest.raises(InvalidTemplate, match=r"line [0-9]+, column [0-9]+: "):
            _render(prompt, case["values"])
    else:
        assert _render(prompt, case["values"]) == case["expect"]


def test_neighbours_when_they_hold_more_than_text() -> None:
    fields = "{{ .Role }}:{{ .Content }}:{{ .Thinking }}:{{ len .Images }}:{{ len .ToolCalls }};"
    template = f"{{{{ range .Messages }}}}{fields}{{{{ end }}}}"
    messages = [
        Message("user", (Text("a"), Image(b"1"))),
        Message("user", (Image(b"2"),)),
        Message("assistant", (Thinking("t"), ToolCall("", "f", {}))),
        Message("assistant", (Text("b"), Thinking("u"), ToolCall("", "g", {}))),
    ]
    assert GoPrompt(template).render(messages) == "user:a\n\n::2:0;assistant:\n\nb:t\n\nu:0:2;"


def test_tool_results_when_one_message_holds_two() -> None:
    message = Message("tool", (ToolResult("c1", "f", "r1"), ToolResult("c2", "", "r2")))
    template = "{{ range .Messages }}[{{ .ToolCallID }} {{ .ToolName }} {{ .Content }}]{{ end }}"
    assert GoPrompt(template).render([message]) == "[c1 f r1][c2  r2]"


def test_tools_when_printed() -> None:
    template = "{{ range .Messages }}{{ end }}{{ range .Tools }}{{ .Function }}{{ end }}"
    assert GoPrompt(template).render(USER, [WEATHER]) == (
        '{"name":"weather","description":"of \\u003ca place\\u003e","parameters":{"type":"object","$defs":{"x":1},'
        '"required":["place"],"properties":{"days":{"anyOf":[{"type":"integer"},{"type":["array","null"]}],'
        '"enum":[1,2.5]},"place":{"type":"string"}}}}'
    )


def test_tools_when_there_are_none() -> None:
    template = (
        "{{ range .Messages }}{{ end }}{{ if .Tools }}yes{{ end }}{{ eq .Tools nil }}{{ len .Tools }}{{ .Tools }}"
    )
    assert GoPrompt(template).render(USER) == "true0null"


def test_typescript_type_when_a_parameter_has_several() -> None:
    template = (
        "{{ range .Messages }}{{ end }}{{ range .Tools }}{{ range $name, $p := .Function.Parameters.Properties }}"
        "{{ $name }}: {{ toTypeScriptType $p }}; {{ end }}{{ toTypeScriptType . }}{{ end }}"
    )
    assert GoPrompt(template).render(USER, [WEATHER]) == "days: number | any[] | null; place: string; any"


@pytest.mark.parametrize(
    "tool", [{}, {"function": 3}, {"function": {"parameters": {"properties": {"a": [], "b": {}}}}}]
)
def test_tools_when_they_are_malformed(tool: dict[str, Any]) -> None:
    prompt = GoPrompt("{{ range .Messages }}{{ end }}{{ json .Tools }}{{ .Tools }}")
    assert json.loads(prompt.render(USER, [tool]).partition("][")[0] + "]")[0]["type"] == ""


def test_tools_when_nested_beyond_reason() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"items": deep}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": deep}}}}
    with pytest.raises(InvalidTemplate, match="nested too deeply"):
        GoPrompt("{{ .Tools }}{{ .Messages }}").render(USER, [tool])
    with pytest.raises(InvalidTemplate, match="nested too deeply"):
        GoPrompt("{{ .Messages }}").render([Message("assistant", (ToolCall("", "f", {"a": deep}),))])


@pytest.mark.parametrize(
    ("think", "text"),
    [(None, "false  false"), (True, "true  true"), (False, "false  true"), ("high", "true high true")],
)
def test_thinking_when_a_request_asks_for_it(think: bool | str | None, text: str) -> None:
    template = "{{ range .Messages }}{{ end }}{{ .Think }} {{ .ThinkLevel }} {{ .IsThinkSet }}"
    assert GoPrompt(template).render(USER, think=think) == text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ if .System }}S {{ .Response }}<e>{{ else }}N {{ .Response }}<e>{{ end }}<x>", "N "),
        ("{{ range 2 }}{{ $.Response }}<e>{{ end }}<x>", ""),
        ('{{ .Prompt }}{{ with .Response }}<{{ . }}>{{ end }}<x>{{ printf "%s!" .Response }}<y>', "hi<x>!"),
        ('{{ define "t" }}[{{ . }}]{{ end }}{{ template "t" .Prompt }}{{ .Response }}<e>', "[hi]"),
    ],
)
def test_last_turn_when_response_is_in_a_block(template: str, text: str) -> None:
    assert GoPrompt(template).render(USER) == text


def test_last_turn_when_the_assistant_began_it() -> None:
    messages = [*USER, text_message("assistant", "Well")]
    assert GoPrompt("<u>{{ .Prompt }}<a>{{ .Response }}<e>").render(messages) == "<u>hi<a>Well"


def test_infill_when_the_template_takes_messages_too() -> None:
    prompt = GoPrompt(
        "{{ if .Suffix }}<P>{{ .Prompt }}<S>{{ .Suffix }}<M>{{ else }}{{ range .Messages }}{{ end }}{{ end }}"
    )
    assert prompt.render_infill("a", "b") == "<P>a<S>b<M>"
    assert prompt.mentions("suffix")


def test_unknown_names_when_a_template_is_misspelt() -> None:
    template = "{{ if .First }}<start>{{ end }}{{ .Sytem }}|{{ .Prompt }}|{{ .Response }}"
    assert GoPrompt(template).unknown_names() == ("First", "Sytem")
    assert GoPrompt("{{ .System }}{{ .Prompt }}{{ .Suffix }}{{ .Think }}").unknown_names() == ()


def test_texts_when_they_hold_marks_or_what_utf8_cannot_hold() -> None:
    prompt = GoPrompt("{{ range .Messages }}{{ .Content }}{{ end }}")
    assert (
        prompt.render([text_message("user", "\ufdd0<|x|>\ufdd1 {{ .System }} <&>")])
        == "\ufdd0<|x|>\ufdd1 {{ .System }} <&>"
    )
    assert prompt.render([text_message("user", "\udcc3\udca9")]) == "\ufffd\ufffd"
