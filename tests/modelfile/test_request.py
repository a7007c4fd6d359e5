"""A Modelfile as a create request: the golden cases, typing, what repeats, what clears, and where errors point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidModelfile
from corral.core.options import RETIRED, SKIPPED_IN_MODELFILES
from corral.modelfile.parser import parse_modelfile
from corral.modelfile.request import ModelfileRequest, Reference, to_request

GOLDEN = Path(__file__).parents[1] / "golden" / "modelfiles.jsonl"
CASES = [case for case in map(json.loads, GOLDEN.open(encoding="utf-8")) if case["kind"] == "request"]
ACCEPTED = [case for case in CASES if "expect" in case]
REFUSED = [case for case in CASES if "error" in case]

# The original names the Go type and value; ours names the parameter too.
OWN_WORDS = {"invalid int value [1.5]": "num_ctx takes int, not '1.5'"}


def request_of(text: str) -> ModelfileRequest:
    """The request of a file, FROM added."""
    return to_request(parse_modelfile(f"FROM m\n{text}"))


def refusal(text: str) -> InvalidModelfile:
    """The error that a file is refused with, FROM added as line 1."""
    with pytest.raises(InvalidModelfile) as caught:
        request_of(text)
    return caught.value


@pytest.mark.parametrize("case", ACCEPTED, ids=[case["id"] for case in ACCEPTED])
def test_request_when_the_golden_file_accepts(case: dict[str, Any]) -> None:
    made = to_request(parse_modelfile(case["input"]))
    assert {"from": made.froms[0].value, **made.request} == case["expect"]


@pytest.mark.parametrize("case", REFUSED, ids=[case["id"] for case in REFUSED])
def test_error_when_the_golden_file_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidModelfile) as caught:
        to_request(parse_modelfile(case["input"]))
    assert OWN_WORDS.get(case["error"], case["error"]) in caught.value.message
    assert caught.value.line == 2


def test_request_when_only_from_is_there() -> None:
    made = to_request(parse_modelfile("FROM m"))
    assert made == ModelfileRequest((Reference("m", 1),), (), None, {}, ())


def test_references_when_commands_repeat() -> None:
    made = request_of('FROM "./a b.gguf"\nADAPTER ~/x\nADAPTER y\nDRAFT d1\nDRAFT d2\n')
    assert made.froms == (Reference("m", 1), Reference("./a b.gguf", 2))
    assert made.adapters == (Reference("~/x", 3), Reference("y", 4))
    assert made.draft == Reference("d2", 6)
    assert made.request == {}


@pytest.mark.parametrize("keyword", ["FROM", "ADAPTER", "DRAFT"])
def test_error_when_a_reference_is_empty(keyword: str) -> None:
    error = refusal(f'{keyword} ""\n')
    assert f"{keyword} names nothing" in error.message
    assert error.line == 2


def test_texts_when_explicitly_empty() -> None:
    assert request_of('SYSTEM a\nSYSTEM ""\nTEMPLATE \n').request == {"system": "", "template": ""}


def test_request_when_everything_is_set() -> None:
    made = request_of(
        "TEMPLATE {{ .Prompt }}\nSYSTEM s\nLICENSE l\nMESSAGE user hi\nMESSAGE assistant a: b\n"
        "RENDERER r\nPARSER p\nREQUIRES 0.14.0\nPARAMETER top_p 1\n"
    )
    assert made.request == {
        "template": "{{ .Prompt }}",
        "system": "s",
        "license": ["l"],
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a: b"}],
        "renderer": "r",
        "parser": "p",
        "requires": "0.14.0",
        "parameters": {"top_p": 1.0},
    }


def test_stop_when_values_are_quoted_or_blank() -> None:
    assert request_of('PARAMETER stop " a "\nPARAMETER stop "\n"\n').request["parameters"] == {"stop": [" a ", "\n"]}


@pytest.mark.parametrize("name", sorted(RETIRED))
def test_warning_when_a_parameter_is_retired(name: str) -> None:
    made = request_of(f"PARAMETER seed 1\nPARAMETER {name} whatever\n")
    assert made.request == {"parameters": {"seed": 1}}
    assert made.warnings == (f"line 3: parameter {name!r} has no effect and was skipped",)


@pytest.mark.parametrize("name", sorted(SKIPPED_IN_MODELFILES))
def test_warning_when_a_parameter_counts_only_in_requests(name: str) -> None:
    made = request_of(f"PARAMETER seed 1\nPARAMETER {name} 1\n")
    assert made.request == {"parameters": {"seed": 1}}
    assert made.warnings == (f"line 3: parameter {name!r} counts only in requests and was skipped",)


@pytest.mark.parametrize(("name", "near"), [("Temperature", "temperature"), ("num_ctxt", "num_ctx"), ("stops", "stop")])
def test_hint_when_a_parameter_is_unknown(name: str, near: str) -> None:
    error = refusal(f"PARAMETER seed 1\n  PARAMETER {name} 1\n")
    assert error.message.endswith(f"unknown parameter {name!r}; did you mean {near!r}?")
    assert (error.line, error.column) == (3, 3)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("num_ctx 1.5", "num_ctx takes int"),
        ("temperature warm", "temperature takes float32"),
        ("top_p nan", "top_p takes float32"),
        ("use_mmap maybe", "use_mmap takes true or false"),
        ('seed ""', "seed takes int"),
    ],
)
def test_error_when_a_parameter_has_another_type(setting: str, expected: str) -> None:
    # A later good value does not hide the bad one.
    error = refusal(f"PARAMETER {setting}\nPARAMETER {setting.split()[0]} 1\n")
    assert f"parameter {expected}" in error.message
    assert error.line == 2


@pytest.mark.parametrize(
    ("text", "version"),
    [("0.14.0", "0.14.0"), ("v1.2.3", "1.2.3"), ("0.14", "0.14"), ("1.0.0-rc.1+build.5", "1.0.0-rc.1+build.5")],
)
def test_version_when_it_is_semantic(text: str, version: str) -> None:
    assert request_of(f"REQUIRES {text}\n").request == {"requires": version}


@pytest.mark.parametrize("text", ["banana", '""', "01.2.3", "1.2.3.4", "1.2-rc1", "1.2.3-01", "1.2.3 4", "١.0.0"])
def test_error_when_a_version_is_not_semantic(text: str) -> None:
    assert "requires must be a valid semver (e.g. 0.14.0)" in refusal(f"REQUIRES {text}\nREQUIRES 1.0.0\n").message
