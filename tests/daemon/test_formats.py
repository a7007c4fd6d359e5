"""What an answer must match, by the fields of every server, as one format; what is wrong is named by its field."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from corral.core.errors import InvalidRequest
from corral.core.types import OutputFormat
from corral.daemon.dialects.formats import guided_format, native_format, one_format, response_format

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
JSON = OutputFormat("json")
OF_SCHEMA = OutputFormat("json_schema", json.dumps(SCHEMA, separators=(",", ":")))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("", None), ("json", JSON), (SCHEMA, OF_SCHEMA), ({}, OutputFormat("json_schema", "{}"))],
)
def test_native(value: Any, expected: OutputFormat | None) -> None:
    assert native_format(value) == expected


@pytest.mark.parametrize("value", ["yaml", 5, [SCHEMA], True])
def test_native_of_another_kind_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="invalid format: give"):
        native_format(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, JSON),
        ({"type": "json_object", "schema": SCHEMA}, OF_SCHEMA),
        ({"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}, OF_SCHEMA),
        ({"type": "json_schema", "name": "n", "schema": SCHEMA}, OF_SCHEMA),
        ({"type": "json_schema", "json_schema": {"schema": json.dumps(SCHEMA)}}, OF_SCHEMA),
    ],
)
def test_response_format(value: Any, expected: OutputFormat | None) -> None:
    assert response_format(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("json", "response_format must be an object, not 'json'"),
        ({"type": "xml"}, "response_format.type must be text, json_object or json_schema, not 'xml'"),
        ({"type": "json_schema"}, "response_format.schema must be a JSON Schema object, not None"),
        ({"type": "json_schema", "json_schema": 1}, "response_format.json_schema must be an object, not 1"),
        ({"type": "json_schema", "json_schema": {}}, "response_format.json_schema.schema must be a JSON Schema object"),
        ({"type": "json_object", "schema": "{"}, "response_format.schema must be a JSON Schema object or its text"),
    ],
)
def test_response_format_names_what_is_wrong(value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        response_format(value)
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"guided_json": SCHEMA}, OF_SCHEMA),
        ({"guided_json": json.dumps(SCHEMA)}, OF_SCHEMA),
        ({"guided_regex": "a+"}, OutputFormat("regex", "a+")),
        ({"guided_choice": ["x", "y"]}, OutputFormat("choice", '["x","y"]')),
        ({"guided_grammar": "root ::= 'a'"}, OutputFormat("ebnf", "root ::= 'a'")),
        ({"structured_outputs": {"choice": ["x"]}}, OutputFormat("choice", '["x"]')),
        ({"structured_outputs": {"json": SCHEMA}}, OF_SCHEMA),
        ({"structured_outputs": {"json_object": True}}, JSON),
        ({"structured_outputs": {"json_object": False, "regex": "a"}}, OutputFormat("regex", "a")),
        ({"json_schema": SCHEMA}, OF_SCHEMA),
        ({"grammar": 'root ::= "a"'}, OutputFormat("ebnf", 'root ::= "a"')),
        ({"grammar": ""}, None),
        ({"grammar": {"type": "json", "value": SCHEMA}}, OF_SCHEMA),
        ({"grammar": {"type": "json_schema", "value": {"name": "n", "schema": SCHEMA}}}, OF_SCHEMA),
        ({"grammar": {"type": "regex", "value": "a+"}}, OutputFormat("regex", "a+")),
    ],
)
def test_fields_of_other_servers(fields: dict[str, Any], expected: OutputFormat | None) -> None:
    assert guided_format(SimpleNamespace(**fields)) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"guided_choice": []}, "guided_choice must be a list of strings, at least one, not []"),
        ({"guided_choice": [1]}, "guided_choice must be a list of strings"),
        ({"guided_regex": ""}, "guided_regex must be a string, not ''"),
        ({"guided_json": 1}, "guided_json must be a JSON Schema object, not 1"),
        ({"structured_outputs": "json"}, "structured_outputs must be an object"),
        ({"structured_outputs": {"regex": 1}}, "structured_outputs.regex must be a string, not 1"),
        ({"grammar": {"type": "xml", "value": "a"}}, "grammar.type must be one of json, json_schema"),
        ({"grammar": {"type": "regex"}}, "grammar.value is missing"),
        ({"guided_regex": "a", "guided_json": {}}, "guided_json and guided_regex cannot both hold for one answer"),
        ({"guided_regex": "a", "grammar": "b"}, "guided_regex and grammar cannot both hold"),
    ],
)
def test_fields_of_other_servers_name_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        guided_format(SimpleNamespace(**fields))
    assert refused.value.message.startswith(message)


def test_only_one_may_hold() -> None:
    assert one_format(response_format=None, grammar=JSON) == JSON
    with pytest.raises(InvalidRequest, match="response_format and grammar cannot both hold"):
        one_format(response_format=JSON, grammar=JSON)
