"""Go templates over plain data: the shared cases, more recorded from Go itself, and templates that mean harm."""

from __future__ import annotations

import json
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidTemplate
from corral.modelfile.gotemplate.template import GoTemplate
from hypothesis import given, settings
from hypothesis import strategies as st

GOLDEN = Path(__file__).parents[1] / "golden"
KNOWN = ("System", "Messages", "Tools", "Prompt", "Response")
DATA: dict[str, Any] = {
    "A": "héllo",
    "N": 3,
    "L": ["a", None, 2.5],
    "M": {"b": 2, "a": [1]},
    "Z": None,
}
PIECES = [
    *("{{", "}}", "{{- ", " -}}", "{{/*", "*/}}", "{{if ", "{{else}}", "{{else if ", "{{end}}", "{{range ", "{{with "),
    *(
        '{{define "t"}}',
        '{{template "t" .}}',
        '{{block "b" .}}',
        "{{break}}",
        "{{continue}}",
        "$x",
        ":=",
        "=",
        ",",
        "|",
    ),
    *("(", ")", " ", ".", ".A", ".N", ".L", ".M", ".M.a", ".Z", "$", "$.A", "1", "-2.5", "0x1F", "'c'", '"s"', "`r`"),
    *("nil", "true", "len", "index", "slice", "eq", "lt", "and", "or", "not", "print", "printf", '"%[2]*.[1]*d"'),
    *("json", "html", "js", "urlquery", "call", "text", "\n", "é", "\x00", "\ud800", "\\", '"', "'", "`"),
]


def _cases() -> list[Any]:
    paths = (GOLDEN / "templates.jsonl", *sorted((GOLDEN / "gotemplate").glob("*.jsonl")))
    cases = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [pytest.param(case, id=case["id"]) for case in cases if case["mode"] == "execute"]


def _expected(case: dict[str, Any]) -> str:
    today = date.today()
    text: str = case["expect"]
    return text.replace("@DATE@", str(today)).replace("@YESTERDAY@", str(today - timedelta(days=1)))


def _run(source: str, **data: Any) -> str:
    return GoTemplate(source).execute(data)


def _refusal(source: str, **data: Any) -> str:
    with pytest.raises(InvalidTemplate) as caught:
        _run(source, **data)
    return caught.value.message


def _outcome(source: str) -> str:
    """The text, or the refusal: anything else that is raised fails the test."""
    try:
        return GoTemplate(source).execute(DATA)
    except InvalidTemplate as error:
        return error.message


@pytest.mark.parametrize("case", _cases())
def test_template_when_go_was_given_the_same(case: dict[str, Any]) -> None:
    stage = case.get("error", {}).get("stage")
    if stage == "parse":
        with pytest.raises(InvalidTemplate, match=r"line [0-9]+, column [0-9]+: "):
            GoTemplate(case["template"])
        return
    template = GoTemplate(case["template"])
    if stage == "execute":
        with pytest.raises(InvalidTemplate, match=r"line [0-9]+, column [0-9]+: "):
            template.execute(case["data"])
    else:
        assert template.execute(case["data"]) == _expected(case)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("ok\n  {{ upper .A }}", "line 2, column 6: function 'upper' not defined"),
        ("{{ if .A }}\n{{ .A }}\n", "line 3, column 1: unexpected end of the template"),
        ("a\n\n{{ .A", "line 3, column 3: unclosed action"),
        ("é{{ $x }}", "line 1, column 5: undefined variable '$x'"),
        ("{{ .A }}\n{{ index .L 7 }}", "line 2, column 4: error calling index: index out of range: 7"),
        ("{{ range .L }}\n{{ .Foo }}{{ end }}", "line 2, column 4: can't evaluate field Foo in type string"),
    ],
)
def test_refusal_when_it_tells_the_place(source: str, place: str) -> None:
    assert place in _refusal(source, A="a", L=["x"])


@pytest.mark.parametrize(
    "source",
    [
        "{{ range 1000000000 }}{{ range 1000000000 }}{{ end }}{{ end }}",
        '{{ define "a" }}{{ template "a" . }}{{ template "a" . }}{{ end }}{{ template "a" . }}',
        '{{ template "" . }}',
        '{{ $x := "aaaaaaaa" }}{{ range 100 }}{{ $x = printf "%s%s" $x $x }}{{ end }}',
        "{{ range 1000000000 }}{{ len $.Text }}{{ end }}",
        "{{ range 1000000000 }}{{ range $.Map }}{{ break }}{{ end }}{{ end }}",
        "{{ $a := 1 }}" + "{{ $b := 1 }}" * 20_000 + "{{ range 1000000000 }}{{ if $a }}{{ end }}{{ end }}",
        '{{ printf "%1000000d" 1 }}',
        '{{ range 1000000000 }}{{ printf "%9999d" 1 }}{{ end }}',
        "{{" + "(" * 50_000 + "1" + ")" * 50_000 + "}}",
        "{{ if 1 }}" * 20_000 + "{{ end }}" * 20_000,
        " " * (1 << 20) + " ",
    ],
)
def test_template_when_it_means_harm(source: str) -> None:
    started = time.monotonic()
    assert _refusal(source, Text="é" * 100_000, Map={str(number): number for number in range(10_000)})
    assert time.monotonic() - started < 20


def test_template_when_brackets_of_printf_never_close() -> None:
    started = time.monotonic()
    assert len(_run("{{ len (printf .F) }}", F="%[" * 200_000)) > 5
    assert time.monotonic() - started < 10


def test_chain_of_else_ifs_when_it_is_long() -> None:
    source = "{{ if 0 }}" + "".join(f"{{{{ else if eq .N {number} }}}}{number}" for number in range(2000)) + "{{ end }}"
    assert _run(source, N=1999) == "1999"


def test_vars_when_names_stand_anywhere() -> None:
    source = '{{ $x := .A.B }}{{ define "t" }}{{ .C }}{{ end }}{{ if (print $x .D) }}{{ else }}{{ $.e }}{{ end }}'
    assert GoTemplate(source).vars == ("$", "$x", "a", "b", "c", "d", "e")


def test_mentions_when_a_field_is_taken_of_parentheses() -> None:
    template = GoTemplate("{{ (index .Messages 0).Content }}")
    assert template.mentions("messages")
    assert template.mentions("content")
    assert template.vars == ()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("{{ if .First }}{{ end }}{{ .Sytem }}{{ .Prompt }}", ("First", "Sytem")),
        ("{{ range .Messages }}{{ .Role }}{{ $.Foo }}{{ else }}{{ .Bar }}{{ end }}", ("Foo", "Bar")),
        ("{{ with .System }}{{ .X }}{{ else with .Other }}{{ .Y }}{{ else }}{{ .Z.Deep }}{{ end }}", ("Other", "Z")),
        ('{{ define "a" }}{{ .Q }}{{ end }}{{ template "a" . }}', ("Q",)),
        ('{{ define "a" }}{{ .Role }}{{ end }}{{ range .Messages }}{{ template "a" . }}{{ end }}', ()),
        ("{{ $x := .System }}{{ $x.Y }}{{ (index .Tols 0).Name }}", ("Tols",)),
        ("{{ .system }}", ("system",)),
    ],
)
def test_unknown_names_when_dot_is_the_data(source: str, names: tuple[str, ...]) -> None:
    assert GoTemplate(source).unknown_names(KNOWN) == names


def test_text_when_a_slice_cuts_characters() -> None:
    assert _run("{{ slice .S 0 2 }}", S="aé") == "a\ufffd"
    assert _run("{{ slice .S 0 2 }}{{ slice .S 2 }}", S="aé") == "aé"
    assert _run("{{ json (slice .S 0 2) }}", S="aé") == '"a\ufffd"'


@pytest.mark.parametrize("verb", ["%s", "%q", "%v"])
def test_marks_around_user_texts_when_printed(verb: str) -> None:
    marked = "\ufdd0<|im_end|>\ufdd1"
    assert marked in _run(f"{{{{ printf {json.dumps(verb)} .S }}}}{{{{ json .S }}}}", S=marked)
    assert marked in _run(f"{{{{ printf {json.dumps(verb)} .S }}}}", S=marked)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=60))
def test_template_when_it_is_any_text(source: str) -> None:
    assert _outcome(source) == _outcome(source)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([piece for piece in PIECES if "{" not in piece and "}" not in piece]), max_size=8))
def test_action_when_it_is_any_text(pieces: list[str]) -> None:
    source = f"{{{{ $x := .L }}}}{{{{ {' '.join(pieces)} }}}}"
    assert _outcome(source) == _outcome(source)
