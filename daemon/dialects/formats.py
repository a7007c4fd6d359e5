"""Fields that say what an answer must match, of every server's making, as one OutputFormat."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ...core.errors import InvalidRequest
from ...core.types import OutputFormat

_SHOWN_CHARS = 40
# vLLM's names within `structured_outputs`, and TGI's types within `grammar`, by the kind that each stands for.
_STRUCTURED_KINDS = ("json", "regex", "choice", "grammar", "json_object")
_TYPED_GRAMMARS = {"json": "json", "json_schema": "json", "json_object": "json", "regex": "regex"}


def native_format(value: Any) -> OutputFormat | None:
    """Ollama's `format`. Errors: InvalidRequest."""
    if value is None or value == "":
        return None
    if value == "json":
        return OutputFormat("json")
    if isinstance(value, dict):
        return _json_schema("format", value)
    raise InvalidRequest(f'invalid format: give "json" or a JSON Schema object, not {_shown(value)}')


def response_format(value: Any, where: str = "response_format") -> OutputFormat | None:
    """OpenAI's `response_format`: text, json_object, or json_schema with its schema nested or beside the type.

    Errors: InvalidRequest names the field.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidRequest(f"{where} must be an object, not {_shown(value)}")
    kind = value.get("type")
    if kind in (None, "text"):
        return None
    if kind == "json_object":
        # Some servers take a schema here as well.
        schema = value.get("schema")
        return OutputFormat("json") if schema is None else _json_schema(f"{where}.schema", schema)
    if kind != "json_schema":
        raise InvalidRequest(f"{where}.type must be text, json_object or json_schema, not {_shown(kind)}")
    holder, place = value.get("json_schema"), f"{where}.json_schema"
    if holder is None:
        holder, place = value, where
    if not isinstance(holder, dict):
        raise InvalidRequest(f"{place} must be an object, not {_shown(holder)}")
    return _json_schema(f"{place}.schema", holder.get("schema"))


def guided_format(body: Any) -> OutputFormat | None:
    """What a body's extra fields of vLLM, llama.cpp's server and TGI ask for: guided_json, guided_regex, guided_choice,
    guided_grammar, structured_outputs, json_schema and grammar. Errors: InvalidRequest names the field, or two at once.
    """
    found: dict[str, OutputFormat | None] = {
        name: _read(name, name.removeprefix("guided_"), getattr(body, name, None))
        for name in ("guided_json", "guided_regex", "guided_choice", "guided_grammar")
    }
    found["json_schema"] = _read("json_schema", "json", getattr(body, "json_schema", None))
    grammar = getattr(body, "grammar", None)
    if isinstance(grammar, dict):
        kind = _TYPED_GRAMMARS.get(str(grammar.get("type")))
        if kind is None:
            raise InvalidRequest(f"grammar.type must be one of {', '.join(_TYPED_GRAMMARS)}")
        value = grammar.get("value")
        if isinstance(value, dict) and grammar.get("type") == "json_schema":
            value = value.get("schema", value)
        found["grammar"] = _read("grammar.value", kind, value)
        if found["grammar"] is None:
            raise InvalidRequest("grammar.value is missing")
    else:
        found["grammar"] = _read("grammar", "grammar", grammar or None)
    return one_format(**found, **_structured_outputs(getattr(body, "structured_outputs", None)))


def one_format(**found: OutputFormat | None) -> OutputFormat | None:
    """The one format among those found, by the field of each. Errors: InvalidRequest names two fields."""
    given = {name: value for name, value in found.items() if value is not None}
    if len(given) > 1:
        first, second, *_ = given
        raise InvalidRequest(f"{first} and {second} cannot both hold for one answer: leave one out")
    return next(iter(given.values()), None)


def _structured_outputs(value: Any) -> dict[str, OutputFormat | None]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"structured_outputs must be an object, not {_shown(value)}")
    return {
        f"structured_outputs.{kind}": _read(f"structured_outputs.{kind}", kind, value.get(kind))
        for kind in _STRUCTURED_KINDS
    }


def _read(where: str, kind: str, value: Any) -> OutputFormat | None:
    if value is None:
        return None
    if kind == "json":
        return _json_schema(where, value)
    if kind == "json_object":
        return OutputFormat("json") if value is True else None
    if kind == "choice":
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise InvalidRequest(f"{where} must be a list of strings, at least one, not {_shown(value)}")
        return OutputFormat("choice", msgspec.json.encode(value).decode())
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"{where} must be a string, not {_shown(value)}")
    # A grammar's own words tell whether it is EBNF or Lark.
    return OutputFormat("regex" if kind == "regex" else "ebnf", value)


def _json_schema(where: str, value: Any) -> OutputFormat:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise InvalidRequest(f"{where} must be a JSON Schema object or its text") from None
    if not isinstance(value, dict | bool):
        raise InvalidRequest(f"{where} must be a JSON Schema object, not {_shown(value)}")
    return OutputFormat("json_schema", msgspec.json.encode(value).decode())


def _shown(value: Any) -> str:
    return repr(value)[:_SHOWN_CHARS]
