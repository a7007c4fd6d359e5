"""Grammars in llguidance's Lark that force calls: the layout of a format, with each tool's name and parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .call_format import Layout, TaggedArguments
from .schema import allowed_types, named_properties, required_names, resolve, strict_schema, tool_name, tool_parameters

# A small model may repeat a call for ever; no answer needs more of them at once.
MAX_CALLS = 8


def write_grammar(
    layout: Layout, tools: Sequence[Mapping[str, Any]], parallel: bool, special_tokens: Mapping[str, int]
) -> str:
    """A Lark source that accepts one or more calls of the tools, and nothing else."""
    writer = _Writer(layout, special_tokens)
    calls = [writer.rule(f"call_{number}", writer.call(number, tool)) for number, tool in enumerate(tools)]
    writer.rule("call", " | ".join(calls))
    one = writer.join(writer.text(layout.begin), "call", writer.text(layout.end))
    many = one
    if parallel and layout.between is not None:
        repeated = f"({writer.join(writer.text(layout.between), 'call')}){{0,{MAX_CALLS - 1}}}"
        many = writer.join(writer.text(layout.begin), "call", repeated, writer.text(layout.end))
    writer.rule("start", f"call | {many}" if layout.is_list_optional else many)
    return writer.source()


class _Writer:
    """Rules as they are made."""

    def __init__(self, layout: Layout, special_tokens: Mapping[str, int]) -> None:
        self._layout = layout
        self._special_tokens = special_tokens
        texts = sorted(filter(None, special_tokens), key=len, reverse=True)
        self._special = re.compile(f"({'|'.join(map(re.escape, texts))})") if texts else None
        self._rules: list[str] = []

    def rule(self, name: str, body: str) -> str:
        """Add a rule; its name."""
        self._rules.append(f"{name}: {body}")
        return name

    def source(self) -> str:
        """All rules."""
        return "\n".join(reversed(self._rules)) + "\n"

    def join(self, *parts: str) -> str:
        """A sequence of what is not empty."""
        return " ".join(filter(None, parts)) or '""'

    def text(self, text: str) -> str:
        """A text of the layout, its markers as tokens where they are such."""
        pieces = self._special.split(text) if self._special else [text]
        return " ".join(
            f"<[{self._special_tokens[piece]}]>" if index % 2 else literal(piece)
            for index, piece in enumerate(pieces)
            if piece
        )

    def call(self, number: int, tool: Mapping[str, Any]) -> str:
        """The body of one tool's rule."""
        layout, name = self._layout, tool_name(tool)
        written = json.dumps(name, ensure_ascii=False)[1:-1] if layout.name_is_json else name
        parameters = tool_parameters(tool)
        if layout.arguments is None:
            body = f"%json {json.dumps(strict_schema(parameters))}"
        else:
            body = self._tagged(number, layout.arguments, parameters)
        arguments = self.rule(f"arguments_{number}", body)
        return self.join(
            self.text(layout.before), literal(written), self.text(layout.middle), arguments, self.text(layout.after)
        )

    def _tagged(self, number: int, tags: TaggedArguments, parameters: Mapping[str, Any]) -> str:
        """Parameters in the order of the schema; those that are not required may be missing."""
        required = required_names(parameters)
        parts = []
        for index, (name, schema) in enumerate(named_properties(parameters).items()):
            value = self._tagged_value(f"value_{number}_{index}", tags, schema)
            whole = self.join(literal(tags.open + name + tags.middle), value, literal(tags.between))
            parts.append(whole if name in required else f"({whole})?")
        return self.join(*parts)

    def _tagged_value(self, name: str, tags: TaggedArguments, schema: Mapping[str, Any]) -> str:
        """A parameter's value and the tag behind it. A string may not hold that tag, as nobody could tell it then."""
        kinds = allowed_types(schema, schema)
        choices = resolve(schema, schema).get("enum")
        if kinds == {"string"} and isinstance(choices, list):
            options = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
            return self.join(self.rule(name, options), literal(tags.close))
        if not kinds or "string" in kinds:
            self._rules.append(f"{name}[suffix={literal(tags.close.strip())}]: /(?s:.*)/")
            return name
        body = f"%json {json.dumps({**schema, 'x-guidance': _BARE_GUIDANCE})}"
        return self.join(self.rule(name, body), literal(tags.close))


_BARE_GUIDANCE = {"whitespace_flexible": False, "coerce_one_of": True}


def literal(text: str) -> str:
    """A Lark string, or nothing for an empty text."""
    return json.dumps(text, ensure_ascii=False) if text else ""
