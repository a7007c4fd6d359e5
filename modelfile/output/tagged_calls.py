"""Rows for calls between tags: JSON as Hermes, Qwen, Granite, Phi and FireFunction write it, arguments in tags as
Qwen3-Coder and GLM do."""

from __future__ import annotations

import re
from typing import Any

from .call_format import CallFormat, Layout, TaggedArguments
from .calls import Calls
from .cursor import Cursor, Malformed, Markers, Steps
from .json_calls import read_calls
from .schema import named_properties, typed_value

_MAX_NAME_CHARS = 200


def json_layout(
    open: str = "", close: str = "", names: tuple[str, str] = ("name", "arguments"), is_list: bool = False
) -> Layout:
    """The layout of JSON objects between texts; of a list of them, or of each by itself."""
    before, middle = f'{{"{names[0]}": "', f'", "{names[1]}": '
    if is_list:
        return Layout(before, middle, "}", open + "[", "]" + close, ", ", name_is_json=True)
    return Layout(open + before, middle, "}" + close, name_is_json=True)


def tagged_format(
    name: str, signs: tuple[str, ...], layout: Layout, markers: tuple[str, ...], closers: tuple[str, ...] = ()
) -> CallFormat:
    """A row for JSON calls behind a marker; `closers` are what may stand behind them."""

    def read(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
        yield from read_calls(cursor, calls)
        if closers:
            yield from cursor.closer(*closers)

    return CallFormat(name, signs, markers, read, layout, specials=(*markers, *closers))


def argument_format(
    name: str, signs: tuple[str, ...], layout: Layout, markers: tuple[str, ...], head: re.Pattern[str]
) -> CallFormat:
    """A row for calls whose arguments stand in tags. `head` finds the tool's name before the first of them.

    Without its last tag a call is not whole, so that one which was cut off is not made.
    """
    assert layout.arguments is not None
    tags = layout.arguments
    first, (end, *closers) = tags.open.strip(), layout.after.split()
    body_markers = Markers((first, end))

    def read(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
        written, found = yield from cursor.until(body_markers, _MAX_NAME_CHARS)
        match = head.fullmatch((marker + written).strip())
        if not match:
            raise Malformed
        properties = named_properties(calls.parameters(match["name"]))
        arguments: dict[str, Any] = {}
        while found == first:
            key, value = yield from _read_argument(cursor, tags)
            schema = properties.get(key, {})
            arguments[key] = typed_value(value, schema, schema)
            between, found = yield from cursor.until(body_markers)
            if between.strip():
                raise Malformed
        yield calls.whole(match["name"], arguments)
        for closer in closers:
            yield from cursor.closer(closer)

    return CallFormat(name, signs, markers, read, layout, specials=markers)


def _read_argument(cursor: Cursor, tags: TaggedArguments) -> Steps[tuple[str, str]]:
    """Read one argument from behind its first tag: its name, and its value without line breaks that belong to tags."""
    key_close, *value_open = tags.middle.split()
    key, _ = yield from cursor.until(Markers((key_close,)), _MAX_NAME_CHARS)
    for tag in value_open:
        yield from cursor.blanks()
        yield from cursor.expect(tag)
    close = tags.close.strip()
    value, _ = yield from cursor.until(Markers((close,)))
    value = value.removeprefix(tags.middle[len(tags.middle.rstrip()) :])
    return key.strip(), value.removesuffix(tags.close[: tags.close.index(close)])


HERMES = tagged_format(
    "hermes",
    ("<tool_call>",),
    json_layout("<tool_call>\n", "\n</tool_call>"),
    ("<tool_call>",),
    ("</tool_call>",),
)
GRANITE = tagged_format("granite", ("<|tool_call|>",), json_layout("<|tool_call|>", is_list=True), ("<|tool_call|>",))
PHI = tagged_format(
    "phi",
    ("<|tool_call|>", "<|/tool_call|>"),
    json_layout("<|tool_call|>", "<|/tool_call|>", is_list=True),
    ("<|tool_call|>",),
    ("<|/tool_call|>",),
)
FUNCTOOLS = tagged_format("functools", ("functools[",), json_layout("functools", is_list=True), ("functools",))
QWEN_CODER = argument_format(
    "qwen-coder",
    ("<function=", "<parameter="),
    Layout(
        "<tool_call>\n<function=",
        ">\n",
        "</function>\n</tool_call>",
        arguments=TaggedArguments("<parameter=", ">\n", "\n</parameter>", "\n"),
    ),
    ("<tool_call>", "<function="),
    re.compile(r"(?:<tool_call>\s*)?<function=\s*(?P<name>[^>]+?)\s*>"),
)
GLM = argument_format(
    "glm",
    ("<tool_call>", "<arg_key>"),
    Layout(
        "<tool_call>",
        "\n",
        "</tool_call>",
        arguments=TaggedArguments("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", "\n"),
    ),
    ("<tool_call>",),
    re.compile(r"<tool_call>\s*(?P<name>.+)"),
)
