"""Answers that must match a schema, on real weights: the vocabulary's masks, not the model's good will."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corral.backends.llamacpp.engine import load_engine
from corral.backends.pipeline import Pipeline
from corral.backends.protocol import Engine
from corral.core.errors import InvalidFormat
from corral.core.events import Done, Event, FinishReason, TextDelta
from corral.core.types import ChatPrompt, GenerateRequest, LoadOptions, LoadSpec, OutputFormat, Sampling, text_message
from models import smollm2_path

SCHEMAS = Path(__file__).parent.parent / "golden" / "schemas"


@pytest.fixture(scope="module")
def pipeline() -> Iterator[tuple[Engine, Pipeline]]:
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=1024, num_parallel=2))
    engine = load_engine(spec, lambda fraction: None)
    yield engine, Pipeline(engine)
    engine.close()


def answer(
    pipeline: tuple[Engine, Pipeline], output_format: OutputFormat, num_predict: int = 200
) -> tuple[str, FinishReason]:
    _, line = pipeline
    request = GenerateRequest(
        id=1,
        prompt=ChatPrompt((text_message("user", "Fill the record."),)),
        sampling=Sampling(temperature=0, num_predict=num_predict),
        format=output_format,
    )
    events: list[Event] = line.start(line.prepare(request))
    while line.has_work:
        events += [event for _, event in line.step()]
    assert isinstance(events[-1], Done)
    return "".join(event.text for event in events if isinstance(event, TextDelta)), events[-1].reason


def schema(value: Any) -> OutputFormat:
    return OutputFormat("json_schema", json.dumps(value))


def golden(name: str) -> tuple[Any, OutputFormat]:
    value = json.loads((SCHEMAS / f"{name}.json").read_text())["format"]
    return value, schema(value)


@pytest.mark.parametrize("name", ["leaf-first", "node-first"])
def test_references_hold_in_either_order(pipeline, name: str) -> None:
    value, wanted = golden(name)
    text, reason = answer(pipeline, wanted)
    parsed = json.loads(text)
    assert reason is FinishReason.STOP
    assert set(value["required"]) <= set(parsed)
    assert re.search(r'"v": *"[xy]"', text)


def test_enum_behind_a_reference_is_an_enum(pipeline) -> None:
    parsed = json.loads(answer(pipeline, golden("enum-ref")[1])[0])
    assert len(parsed) == 2
    assert set(parsed) <= {"glad", "sad"}


def test_any_of_with_null_and_const(pipeline) -> None:
    parsed = json.loads(answer(pipeline, golden("anyof")[1])[0])
    assert parsed["k"] == "fixed"
    assert parsed["n"] is None or isinstance(parsed["n"], int)


@pytest.mark.parametrize("name", ["escapes", "utf8"])
def test_characters_of_an_enum_come_out_as_they_are(pipeline, name: str) -> None:
    value, wanted = golden(name)
    text, reason = answer(pipeline, wanted)
    assert json.loads(text) == value["enum"][0]
    assert reason is FinishReason.STOP
    assert "\ufffd" not in text


def test_numbers_beyond_32_bits_keep_their_digits(pipeline) -> None:
    assert 0 <= json.loads(answer(pipeline, golden("max-safe")[1])[0])["n"] <= 9007199254740991
    assert 19999999998 <= json.loads(answer(pipeline, golden("range")[1])[0])["n"] <= 20000000000


def test_constant_beyond_doubles_keeps_its_digits(pipeline) -> None:
    text, reason = answer(pipeline, golden("const-big")[1])
    assert json.loads(text) == {"id": 9007199254740993}
    assert reason is FinishReason.STOP


def test_json_is_an_object(pipeline) -> None:
    text, reason = answer(pipeline, OutputFormat("json"))
    assert text.lstrip().startswith("{")
    if reason is FinishReason.STOP:
        assert isinstance(json.loads(text), dict)


def test_pattern_and_regex_and_grammar(pipeline) -> None:
    parsed = json.loads(answer(pipeline, schema({"type": "string", "pattern": "^[a-c]{3}-[0-9]{2}$"}))[0])
    assert re.fullmatch(r"[a-c]{3}-[0-9]{2}", parsed)
    assert re.fullmatch(r"(yes|no)!", answer(pipeline, OutputFormat("regex", "(yes|no)!"))[0])
    assert answer(pipeline, OutputFormat("lark", 'start: "left" | "right"'))[0] in ("left", "right")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (schema({"type": "foo"}), "Invalid type: foo"),
        (schema({"$ref": "#/nope"}), "Pointer '/nope' does not exist"),
        (schema({"type": "string", "pattern": "(?=a)b"}), "look-around"),
        (OutputFormat("json_schema", "{"), "format:"),
        (schema({"properties": {"n": {"maximum": 2**53}}}), "#/properties/n/maximum: 9007199254740992 is beyond"),
        (OutputFormat("regex", "("), "regex parse error"),
        (OutputFormat("lark", "start: nope"), "nope"),
    ],
)
def test_unusable_schema_is_refused_before_any_token(pipeline, wanted: OutputFormat, words: str) -> None:
    with pytest.raises(InvalidFormat) as refused:
        answer(pipeline, wanted)
    assert words in refused.value.message
