"""The tools of a request: their names, the JSON schemas of their parameters, and values typed by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cursor import Malformed
from .json_text import parse_value

# Blanks that a forced call may hold in one place: enough for any indentation, too few to write nothing else.
_GUIDANCE = {"whitespace_pattern": r"[\x20\x0A]{0,20}", "coerce_one_of": True}
# With one of these, properties may be named elsewhere too, so that others cannot be forbidden.
_COMPOSING = frozenset(
    ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties")
)
_DEFINITIONS = ("$defs", "definitions", "$schema")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "array": list,
    "null": type(None),
}


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of a tool in OpenAI's form."""
    return str(tool["function"]["name"])


def tool_parameters(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a tool's parameters; empty for a tool without any."""
    parameters = tool["function"].get("parameters")
    return parameters if isinstance(parameters, Mapping) else {}


def strict_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that a forced call's arguments are held to: an object, with the parameters that the tool names.

    A schema that says itself what becomes of others is left as it is.
    """
    schema = {**parameters, "type": "object", "x-guidance": _GUIDANCE}
    names = parameters.get("properties", {} if not parameters else None)
    required = parameters.get("required") or []
    if isinstance(names, Mapping) and all(name in names for name in required) and not _COMPOSING & schema.keys():
        schema.setdefault("additionalProperties", False)
    return schema


def named_properties(parameters: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of single parameters, also behind one reference at the top, each with the definitions it may need."""
    schema = resolve(parameters, parameters)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    definitions = {key: parameters[key] for key in _DEFINITIONS if key in parameters}
    return {
        str(name): {**definitions, **value} if isinstance(value, Mapping) else definitions
        for name, value in properties.items()
    }


def required_names(parameters: Mapping[str, Any]) -> frozenset[str]:
    """Names of parameters that every call has."""
    required = resolve(parameters, parameters).get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference within `root` leads to; the schema itself where it is none, or leads nowhere."""
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for key in reference[2:].split("/"):
            target = target.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        if not isinstance(target, Mapping):
            break
        schema = target
    return schema


def allowed_types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> frozenset[str]:
    """Names of the JSON types that a value may have; empty when the schema does not say."""
    schema = resolve(schema, root)
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return frozenset((kinds,))
    if isinstance(kinds, list):
        return frozenset(kind for kind in kinds if isinstance(kind, str))
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list):
        return frozenset(name for choice in choices for name in _TYPES if _is_of_type(choice, name))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(branches, list) or not branches:
        return frozenset()
    found = [allowed_types(branch, root) for branch in branches if isinstance(branch, Mapping) and branch != schema]
    return frozenset().union(*found) if all(found) else frozenset()


def typed_value(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """The value of a parameter that was written as bare text: JSON where the schema has it so and it is, else text."""
    kinds = allowed_types(schema, root)
    if kinds == {"string"}:
        return text
    try:
        value = parse_value(text.strip())
    except Malformed:
        return _loose_value(text, kinds)
    if "string" in kinds and not any(_is_of_type(value, kind) for kind in kinds - {"string"}):
        return text
    return value


def _loose_value(text: str, kinds: frozenset[str]) -> Any:
    words = {"true": True, "false": False} if "boolean" in kinds else {}
    if "null" in kinds and "string" not in kinds:
        words["none"] = None  # type: ignore[assignment]
    return words.get(text.strip().lower(), text)


def _is_of_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, ()))
