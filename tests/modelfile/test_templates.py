"""The shipped Go templates: each is reached by a Jinja template of its family, compiles, and is what Go makes of it.

golden/known_templates/go.jsonl was recorded by golden/gotemplate/make.go."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from corral.core.types import Message, ToolCall, ToolResult, text_message
from corral.modelfile.autodetect import KnownTemplate, find_template
from corral.modelfile.gotemplate.prompt import GoPrompt
from corral.modelfile.gotemplate.template import GoTemplate
from corral.modelfile.templates import TEMPLATES

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "known_templates"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jinja"))
EOS_TEXTS = {"deepseek-chat": "<｜end▁of▁sentence｜>"}
each_family = pytest.mark.parametrize("name", NAMES)


def known(name: str) -> KnownTemplate:
    jinja = (GOLDEN / f"{name}.jinja").read_text(encoding="utf-8")
    found = find_template(jinja, "<s>", EOS_TEXTS.get(name, "</s>"))
    assert found is not None
    return found


def _records() -> list[Any]:
    lines = (GOLDEN / "go.jsonl").read_text(encoding="utf-8").splitlines()
    return [pytest.param(json.loads(line), id=json.loads(line)["id"]) for line in lines]


@each_family
def test_family_is_found_by_its_name(name: str) -> None:
    assert known(name).name == max((row for row in TEMPLATES if name.startswith(row)), key=len)


def test_every_row_and_file_is_reached_by_a_family() -> None:
    assert {known(name).name for name in NAMES} == set(TEMPLATES)
    files = {path.stem for path in (ROOT / "modelfile" / "templates").glob("*.gotmpl")}
    assert files == {"trimmed"} | {file for row in TEMPLATES.values() for file in row.files}
    assert len({known(name).source for name in NAMES}) == len(NAMES) - 1  # both forms of Gemma are one template


@each_family
def test_template_names_nothing_that_no_request_fills(name: str) -> None:
    prompt = GoPrompt(known(name).source)
    assert prompt.unknown_names() == ()
    assert prompt.mentions("messages")


@pytest.mark.parametrize("record", _records())
def test_execute_when_go_recorded_the_same_template(record: dict[str, Any]) -> None:
    source = known(record["id"].partition("/")[0]).source
    assert record["template"] == source, "record it again with golden/gotemplate/make.go"
    assert GoTemplate(source).execute(record["data"]) == record["expect"]


@each_family
def test_answer_that_was_begun_stays_open(name: str) -> None:
    messages = [text_message("user", "Say a rhyme."), text_message("assistant", "Roses are")]
    assert GoPrompt(known(name).source).render(messages).endswith("Roses are")


@each_family
def test_no_messages_are_no_error(name: str) -> None:
    assert isinstance(GoPrompt(known(name).source).render([]), str)


@pytest.mark.parametrize("name", ["llama2-chat", "mistral-instruct", "gemma-instruct", "command-r", "alpaca"])
def test_tool_result_is_told_where_the_family_knows_no_tools(name: str) -> None:
    call = Message("assistant", (ToolCall("1", "weather", {}),))
    result = Message("tool", (ToolResult("1", "weather", "12 degrees"),))
    assert "12 degrees" in GoPrompt(known(name).source).render([text_message("user", "Warm?"), call, result])


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 1000])
def test_long_text_is_trimmed_at_its_ends_only(size: int) -> None:
    text = "\n \t" + "é " * size + "é" + " " * 20 + "\r\n"
    prompt = GoPrompt(known("command-r").source).render([text_message("user", text)])
    assert f"<|USER_TOKEN|>{text.strip()}<|END_OF_TURN_TOKEN|>" in prompt


def test_wheel_carries_the_files() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert settings["package-data"]["corral.modelfile.templates"] == ["*.gotmpl"]
