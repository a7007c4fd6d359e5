"""Model names: the golden cases, the forms a name shows in, and how names compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidName
from corral.core.names import parse_name, request_name

GOLDEN = Path(__file__).parents[1] / "golden" / "names.jsonl"
CASES = [json.loads(line) for line in GOLDEN.open(encoding="utf-8")]
ACCEPTED = [case for case in CASES if "expect" in case]
REFUSED = [case for case in CASES if "error" in case]


@pytest.mark.parametrize("case", ACCEPTED, ids=[case["id"] for case in ACCEPTED])
def test_parts_when_the_golden_file_accepts(case: dict[str, Any]) -> None:
    name = parse_name(case["input"])
    assert {key: getattr(name, key) for key in case["expect"]} == case["expect"]


@pytest.mark.parametrize("case", REFUSED, ids=[case["id"] for case in REFUSED])
def test_error_when_the_golden_file_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidName, match=r"^invalid model name$"):
        parse_name(case["input"])


@pytest.mark.parametrize("case", ACCEPTED, ids=[case["id"] for case in ACCEPTED])
def test_name_when_its_other_forms_are_read(case: dict[str, Any]) -> None:
    name = parse_name(case["input"])
    assert parse_name(f"{name.scheme}://{name.full}") == name
    assert parse_name(name.short).key == name.key


def test_parts_when_at_their_longest() -> None:
    text = f"{'h' * 350}/{'n' * 80}/{'m' * 80}:{'t' * 80}"
    assert parse_name(text).full == text


def test_key_when_names_differ_in_case() -> None:
    assert parse_name("CaseTest:Q8_A").key == parse_name("casetest:q8_a").key
    assert parse_name("CaseTest:Q8_A") != parse_name("casetest:q8_a")
    assert parse_name("a:b").key != parse_name("a:c").key


@pytest.mark.parametrize("text", [" llama3 ", "llama3:local", "\tllama3:latest:local\n", "llama3"])
def test_name_when_a_person_writes_it(text: str) -> None:
    assert request_name(text) == parse_name("llama3")


@pytest.mark.parametrize("text", ["", ":local", "a:b:local:local", "m:t\0", "../../etc/passwd", "m:t/../x"])
def test_error_when_a_request_names_no_model(text: str) -> None:
    with pytest.raises(InvalidName):
        request_name(text)
