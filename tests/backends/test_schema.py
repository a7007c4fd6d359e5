"""Schemas over a vocabulary of bytes: what they let through, what they refuse, and where an error says the fault is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from corral.backends.fake import ByteTokenizer
from corral.backends.structured import GrammarCompiler
from corral.core.errors import InvalidFormat
from corral.core.types import OutputFormat
from corral.modelfile.output.syntax import ThinkingTags
from hypothesis import example, given, settings
from hypothesis import strategies as st

TOKENIZER = ByteTokenizer()
COMPILER = GrammarCompiler(TOKENIZER)
END = 256


def accepts(wanted: OutputFormat, text: str, thinking: ThinkingTags | None = None) -> bool:
    """Whether every byte of a text may come, and the end after them."""
    constraint = COMPILER.compile(wanted, thinking)
    for token in [*text.encode(), END]:
        logits = np.zeros(TOKENIZER.num_vocab, np.float32)
        constraint.restrict(logits)
        if logits[token] != 0:
            return False
        if token != END:
            constraint.accept(token)
    return True


def schema(value: Any) -> OutputFormat:
    return OutputFormat("json_schema", json.dumps(value))


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


BIG = 9007199254740993


@pytest.mark.parametrize(
    ("value", "good", "bad"),
    [
        ({"type": ["string", "null"]}, ["null", '"x"'], ["1"]),
        ({"type": "string", "nullable": True}, ["null", '"x"'], ["1"]),
        ({"enum": ["a", 1, None, True]}, ['"a"', "1", "null", "true"], ['"b"', "2"]),
        ({"const": {"a": [1]}}, ['{"a": [1]}'], ['{"a": [2]}']),
        ({"type": "string", "pattern": "^[a-c]{2}$"}, ['"ab"'], ['"abc"', '"xy"']),
        ({"type": "string", "format": "date"}, ['"2026-12-04"'], ['"tomorrow"']),
        ({"type": "string", "format": "no-such-format"}, ['"x"'], ["1"]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"'], ['"a"', '"abcd"']),
        ({"type": "integer", "minimum": 3, "maximum": 12}, ["3", "12"], ["2", "13", "3.5"]),
        ({"type": "number", "exclusiveMinimum": 0}, ["0.5"], ["0", "-1"]),
        ({"type": "integer", "multipleOf": 5}, ["10"], ["11"]),
        ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, ["[[1],[]]"], ["[1]"]),
        ({"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": [0]}}, ["[0]", "[0,0]"], ["[]", "[0,0,0]"]),
        ({"type": "array", "prefixItems": [{"const": 1}], "items": False, "minItems": 1}, ["[1]"], ["[2]", "[1,1]"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, ["1", "null"], ['"x"']),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, ["1", '"x"'], ["null"]),
        ({"allOf": [record(a={"const": 1}) | {"additionalProperties": True}]}, ['{"a":1}'], ["{}"]),
        (record(a={"type": "boolean"}), ['{"a":true}', '{ "a" : false }'], ["{}", '{"a":true,"b":1}']),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ['{"x":1}'], ['{"x":"y"}']),
        (
            {"type": "object", "patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": False},
            ['{"n":1}'],
            ['{"x":1}'],
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"enum": [1]}}}, ["1"], ["2"]),
        ({"$ref": "#/definitions/A", "definitions": {"A": {"enum": [1]}}}, ["1"], ["2"]),
        (
            {
                "$defs": {
                    "T": {"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}, "additionalProperties": False}
                },
                "$ref": "#/$defs/T",
            },
            ['{"t":{"t":{}}}'],
            ['{"t":1}'],
        ),
        (True, ["1", "[]"], ["x"]),
    ],
)
def test_keywords_hold(value: Any, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not accepts(schema(value), text)] == []
    assert [text for text in bad if accepts(schema(value), text)] == []


@pytest.mark.parametrize(
    ("value", "good", "bad"),
    [
        ({"const": BIG}, [str(BIG)], [str(BIG - 1)]),
        ({"const": -(2**80)}, [str(-(2**80))], ["-1"]),
        ({"enum": [BIG, "x"]}, [str(BIG), '"x"'], [str(BIG + 1)]),
        (record(id={"const": BIG}, n={"type": "integer"}), [f'{{"id": {BIG}, "n": 5}}'], [f'{{"id": {BIG}}}', "{}"]),
        (
            {"type": "object", "properties": {"a": {"type": "null"}, "id": {"const": BIG}, "z": {"enum": [1]}}},
            ["{}", '{"a":null}', f'{{"id":{BIG}}}', f'{{"a":null,"id":{BIG},"z":1}}', '{"a":null,"z":1}', '{"z":1}'],
            ["{,}", f'{{"id":{BIG},}}', '{"a":null"z":1}'],
        ),
        (
            {"type": "array", "items": {"const": BIG}, "minItems": 1, "maxItems": 2},
            [f"[{BIG}]", f"[{BIG}, {BIG}]"],
            ["[]", f"[{BIG},{BIG},{BIG}]"],
        ),
        ({"type": "array", "items": {"const": BIG}}, ["[]", f"[{BIG}]"], ["[1]"]),
        ({"anyOf": [{"const": BIG}, {"type": "null"}]}, [str(BIG), "null"], ["1"]),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": record(b={"$ref": "#/$defs/B"}), "B": {"const": BIG}}},
            [f'{{"b":{BIG}}}'],
            ['{"b":1}'],
        ),
    ],
)
def test_numbers_beyond_doubles_are_exact(value: Any, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not accepts(schema(value), text)] == []
    assert [text for text in bad if accepts(schema(value), text)] == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "foo"}, "format: #/type: Invalid type: foo"),
        (record(a=record(b={"type": "foo"})), "format: #/properties/a/properties/b/type: Invalid type: foo"),
        (record(a={"type": "string", "pattern": "("}), "format: #/properties/a/pattern: regex parse error"),
        (record(a={"type": "array", "items": {"$ref": "#/$defs/X"}}), "format: #/properties/a/items/$ref: Pointer"),
        ({"anyOf": [{"type": "string"}, {"not": {}}]}, "format: #/anyOf/1/not: Unimplemented keys"),
        ({"type": "array", "uniqueItems": True}, "format: #/uniqueItems: Unimplemented keys"),
        ({"$defs": {"A/B": {"type": "foo"}}, "$ref": "#/$defs/A~1B"}, "format: #/$defs/A~1B/type: Invalid type"),
        (record(a={"type": "array", "minItems": 3, "maxItems": 1}), "format: #/properties/a: Unsatisfiable schema"),
        ({"enum": []}, "format: #: Unsatisfiable schema"),
        (record(n={"type": "integer", "minimum": BIG}), "format: #/properties/n/minimum: 9007199254740993 is beyond"),
        ({"allOf": [{"const": BIG}]}, "format: #: a number in it is beyond 2^53-1"),
        ([1], "format: a schema is a JSON object"),
    ],
)
def test_error_points_to_what_cannot_be_kept(value: Any, message: str) -> None:
    with pytest.raises(InvalidFormat) as refused:
        COMPILER.compile(schema(value))
    assert refused.value.message.startswith(message)


def test_absurd_schemas_are_refused() -> None:
    deep: Any = {"type": "string"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    doubled: Any = {"type": "string"}
    for _ in range(20):
        doubled = {"anyOf": [doubled, doubled]}
    for value in (deep, {"enum": [str(number) for number in range(60_000)]}, doubled):
        with pytest.raises(InvalidFormat, match=r"nested|values|characters"):
            COMPILER.compile(schema(value))


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (OutputFormat("choice", '["yes", "no \\"really\\""]'), ["yes", 'no "really"'], ["maybe", ""]),
        (OutputFormat("regex", "(ab)+"), ["abab"], ["aba"]),
        (OutputFormat("ebnf", 'root ::= "a" b\nb ::= [0-9]+'), ["a12"], ["b"]),
        (OutputFormat("ebnf", 'start: "a" NUMBER\nNUMBER: /[0-9]+/'), ["a1"], ["a"]),
        (OutputFormat("lark", 'start: "left" | "right"'), ["left"], ["up"]),
    ],
)
def test_other_kinds(wanted: OutputFormat, good: list[str], bad: list[str]) -> None:
    assert all(accepts(wanted, text) for text in good)
    assert not any(accepts(wanted, text) for text in bad)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (OutputFormat("regex", "("), "regex parse error"),
        (OutputFormat("lark", "start: nope"), "nope"),
        (OutputFormat("ebnf", "root ::= ("), "format:"),
        (OutputFormat("regex", "a" * (3 << 20)), "more than"),
    ],
)
def test_unusable_grammar_is_refused(wanted: OutputFormat, words: str) -> None:
    with pytest.raises(InvalidFormat) as refused:
        COMPILER.compile(wanted)
    assert words in refused.value.message


class Thinker(ByteTokenizer):
    """Bytes, the end, and a control token that closes thinking."""

    num_vocab = 258
    special_tokens = {"<end>": END, "</think>": 257}

    def vocabulary(self) -> tuple[list[bytes], list[int]]:
        return [*super().vocabulary()[0], b""], [END]


YES = OutputFormat("choice", '["yes"]')


def test_format_follows_thinking_that_ends_in_text() -> None:
    thinking = ThinkingTags("<think>", "</think>")
    assert accepts(YES, "let me < think </think>\n\nyes", thinking)
    assert not accepts(YES, "let me think", thinking)
    assert not accepts(YES, "let me think</think>no", thinking)


def test_format_follows_thinking_that_ends_in_a_control_token() -> None:
    constraint = GrammarCompiler(Thinker()).compile(YES, ThinkingTags("<think>", "</think>"))

    def allowed() -> set[int]:
        logits = np.zeros(258, np.float32)
        constraint.restrict(logits)
        return {token for token in (ord("h"), ord("y"), END, 257) if logits[token] == 0}

    for char in b"hm":
        constraint.accept(char)
    assert allowed() == {ord("h"), ord("y"), 257}
    constraint.accept(257)
    assert allowed() == {ord("y")}
    for char in b"yes":
        constraint.accept(char)
    assert allowed() == {END}


KEYS = st.sampled_from(
    "type properties items anyOf oneOf allOf enum const $ref $defs required minimum maxItems pattern format nullable "
    "not additionalProperties patternProperties minLength a string object".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON | st.dictionaries(KEYS, JSON | st.sampled_from(["string", "object", "array", "#/$defs/a"]), max_size=5))
@example({"properties": {"a": {"minimum": 1 << 80}, "b": {}}, "$defs": None})
@settings(deadline=None)
def test_any_json_is_a_constraint_or_an_error_of_ours(value: Any) -> None:
    try:
        COMPILER.compile(schema(value))
    except InvalidFormat as error:
        assert error.message.startswith("format: ")
