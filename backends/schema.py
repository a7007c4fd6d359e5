"""JSON Schemas made ready for llguidance: what it reads otherwise than meant is rewritten, and what it cannot keep is
found, so that an error can say where it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ..core.errors import InvalidFormat

# A small model that may write blanks at will may write nothing else; this is enough for any indentation.
GUIDANCE = {"whitespace_pattern": r"[\x20\x0A]{0,20}", "coerce_one_of": True}
# llguidance reads numbers as doubles: beyond this whole numbers would silently become their neighbours.
MAX_EXACT = (1 << 53) - 1
MAX_DEPTH = 64
MAX_NODES = 50_000
_MAX_TRIES = 200
# Formats that llguidance knows; JSON Schema has any other one be a remark that binds nobody.
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uri uuid".split())
_DEFINITIONS = ("$defs", "definitions")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas", *_DEFINITIONS)
Schema = dict[str, Any]


def read_schema(source: str) -> Schema:
    """A schema of JSON text, ready for llguidance. Errors: InvalidFormat for what is none, or out of all bounds."""
    try:
        value = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise InvalidFormat(f"format: the schema is not JSON: {error}") from None
    if value is True:
        value = {}
    if not isinstance(value, dict):
        raise InvalidFormat("format: a schema is a JSON object")
    _check_size(value)
    rewritten: Schema = _rewrite(value)
    return rewritten


def with_definitions(schema: Any, root: Schema) -> Schema:
    """A part of a schema as one by itself, with the definitions that its references need."""
    part = schema if isinstance(schema, dict) else {} if schema else {"not": {}}
    return {**part, **{name: root[name] for name in _DEFINITIONS if name in root}, "x-guidance": GUIDANCE}


def locate(root: Schema, complain: Callable[[Schema], str | None]) -> tuple[str, str]:
    """The JSON pointer of the smallest part that `complain` says something of, and what. The root is such a part."""
    tries = _MAX_TRIES
    node, pointer, words = root, "#", complain(with_definitions(root, root)) or ""
    while True:
        for child, step in _children(node):
            tries -= 1
            found = complain(with_definitions(child, root)) if isinstance(child, dict) and tries > 0 else None
            if found is not None:
                node, pointer, words = child, f"{pointer}/{step}", found
                break
        else:
            return _sharpen(node, pointer, words), words


def contains_large(value: Any) -> bool:
    """Whether a whole number lies in it that a double cannot hold."""
    if isinstance(value, dict):
        return any(map(contains_large, value.values()))
    if isinstance(value, list):
        return any(map(contains_large, value))
    return isinstance(value, int) and abs(value) > MAX_EXACT


def _sharpen(node: Schema, pointer: str, words: str) -> str:
    """The pointer of the very keyword, where the words tell."""
    unimplemented = [key for key in node if words.startswith("Unimplemented keys") and f'"{key}"' in words]
    if unimplemented:
        return f"{pointer}/{unimplemented[0]}"
    signs = (("regex parse error", "pattern"), ("Pointer ", "$ref"), ("Resource ", "$ref"), ("Invalid type", "type"))
    for sign, key in signs:
        if sign in words and key in node:
            return f"{pointer}/{key}"
    return pointer


def _children(node: Schema) -> Iterator[tuple[Any, str]]:
    for key in _NAMED:
        if isinstance(node.get(key), dict):
            yield from ((child, f"{key}/{_escape(name)}") for name, child in node[key].items())
    for key in _MANY:
        if isinstance(node.get(key), list):
            yield from ((child, f"{key}/{index}") for index, child in enumerate(node[key]))
    yield from ((node[key], key) for key in _ONE if key in node)


def _escape(name: str) -> str:
    """A key as part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _check_size(schema: Schema) -> None:
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    num_nodes = 0
    while waiting:
        value, depth = waiting.pop()
        num_nodes += 1
        if depth > MAX_DEPTH:
            raise InvalidFormat(f"format: the schema is nested more than {MAX_DEPTH} deep")
        if num_nodes > MAX_NODES:
            raise InvalidFormat(f"format: the schema has more than {MAX_NODES} values")
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting += [(child, depth + 1) for child in children]


def _rewrite(value: Any, is_schema: bool = True) -> Any:
    """Formats that bind nobody left out, and OpenAPI's `nullable` in JSON Schema's words."""
    if isinstance(value, list):
        return [_rewrite(item, is_schema) for item in value]
    if not isinstance(value, dict):
        return value
    if not is_schema:
        # Names of properties or definitions, which may look like keywords.
        return {name: _rewrite(child) for name, child in value.items()}
    rewritten = {}
    for key, item in value.items():
        if key in ("const", "enum", "default", "examples"):
            rewritten[key] = item
        elif key != "format" or (isinstance(item, str) and item in _FORMATS):
            rewritten[key] = _rewrite(item, key not in _NAMED)
    if rewritten.pop("nullable", None) is True:
        return {"anyOf": [rewritten, {"type": "null"}]}
    return rewritten
