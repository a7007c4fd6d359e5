"""Schemas with constants too large for llguidance's numbers, as Lark grammars that spell their digits out.

Only the way from the root to such a constant is written as rules; every other part stays a schema within them.
"""

from __future__ import annotations

import json
from typing import Any

from ..core.errors import InvalidFormat
from .schema import Schema, contains_large, with_definitions

_HEAD = 'start: root\nblank: /[ \\n]{0,20}/\ncomma: blank "," blank\n'
_MAX_RULES = 2000
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def exact_grammar(root: Schema) -> str:
    """A Lark grammar for a schema. Errors: InvalidFormat with the JSON pointer of a number that cannot be kept."""
    writer = _Writer(root)
    writer.write(root, "root", "#")
    return _HEAD + "\n".join(writer.rules) + "\n"


class _Writer:
    """Rules for the parts of one schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        lists = [part for key in ("$defs", "definitions") if isinstance(part := root.get(key), dict)]
        self._definitions = [(str(name), node) for part in lists for name, node in part.items()]
        self.rules: list[str] = []
        self._following: set[str] = set()

    def write(self, node: Any, name: str, pointer: str) -> None:
        """Append the rule `name` for a part of the schema."""
        if len(self.rules) > _MAX_RULES:
            raise InvalidFormat("format: the schema has too many parts around its large numbers")
        target = self._resolve(node, pointer)
        if not contains_large(target) and not self._refers_to_large(target):
            self.rules.append(f"{name}: %json {json.dumps(with_definitions(node, self._root))}")
        elif "const" in target:
            self.rules.append(f"{name}: {_literal(target['const'])}")
        elif isinstance(target.get("enum"), list):
            self.rules.append(f"{name}: {' | '.join(map(_literal, target['enum']))}")
        else:
            self._write_structure(target, name, pointer)

    def _write_structure(self, node: Schema, name: str, pointer: str) -> None:
        bound = next((key for key in _BOUNDS if contains_large(node.get(key))), None)
        if bound is not None:
            raise InvalidFormat(f"format: {pointer}/{bound}: {node[bound]} is beyond 2^53-1 and cannot be kept exactly")
        for key in ("anyOf", "oneOf"):
            if isinstance(node.get(key), list):
                names = self._write_all(node[key], name, f"{pointer}/{key}")
                self.rules.append(f"{name}: {' | '.join(names)}")
                return
        if isinstance(node.get("properties"), dict):
            self._write_object(node, name, pointer)
        elif isinstance(node.get("items"), dict):
            self.write(node["items"], f"{name}_item", f"{pointer}/items")
            low, high = node.get("minItems", 0), node.get("maxItems", "")
            items = f"{name}_item (comma {name}_item){{{max(0, low - 1)},{high - 1 if high else ''}}}"
            self.rules.append(f'{name}: "[" blank {items if low else f"({items})?"} blank "]"')
        else:
            raise InvalidFormat(f"format: {pointer}: a number in it is beyond 2^53-1 and cannot be kept exactly here")

    def _write_object(self, node: Schema, name: str, pointer: str) -> None:
        """Properties in their order; those that are not required may be left out."""
        properties, required = node["properties"], node.get("required", [])
        missing = next((key for key in required if key not in properties), None)
        if missing is not None:
            raise InvalidFormat(f"format: {pointer}/required: {missing!r} is not among the properties")
        parts = self._write_all(list(properties.values()), name, f"{pointer}/properties", list(properties))
        self.rules.append(f'{name}: "{{" blank {name}_first0 blank "}}"')
        for index, (key, part) in enumerate(zip(properties, parts, strict=True)):
            member = f'{_literal(key)} blank ":" blank {part} {name}_rest{index + 1}'
            first, rest = f"{name}_first{index}: {member}", f"{name}_rest{index}: comma {member}"
            if key not in required:
                first, rest = f"{first} | {name}_first{index + 1}", f"{rest} | {name}_rest{index + 1}"
            self.rules += [first, rest]
        self.rules += [f'{name}_first{len(parts)}: ""', f'{name}_rest{len(parts)}: ""']

    def _write_all(self, nodes: list[Any], name: str, pointer: str, keys: list[str] | None = None) -> list[str]:
        names = [f"{name}_{index}" for index in range(len(nodes))]
        for index, (node, rule) in enumerate(zip(nodes, names, strict=True)):
            self.write(node, rule, f"{pointer}/{keys[index] if keys else index}")
        return names

    def _resolve(self, node: Any, pointer: str) -> Schema:
        """What a chain of local references ends at."""
        seen = 0
        while isinstance(node, dict) and isinstance(node.get("$ref"), str) and seen <= len(self._root):
            seen += 1
            found: Any = self._root
            for step in node["$ref"].removeprefix("#").strip("/").split("/"):
                found = (
                    found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) and step else found
                )
            if found is None:
                raise InvalidFormat(f"format: {pointer}/$ref: nothing lies at {node['$ref'][:80]}")
            node = found
        return node if isinstance(node, dict) else {}

    def _refers_to_large(self, node: Schema) -> bool:
        """Whether references within lead to a large number. A part that refers to itself is not followed twice."""
        text = json.dumps(node)
        for name, target in self._definitions:
            if name in self._following or f'/{name}"' not in text:
                continue
            self._following.add(name)
            try:
                if contains_large(target) or (isinstance(target, dict) and self._refers_to_large(target)):
                    return True
            finally:
                self._following.discard(name)
        return False


def _literal(value: Any) -> str:
    """A JSON value as a Lark string of its text."""
    return json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False)
