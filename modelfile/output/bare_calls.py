"""Rows for calls that an answer begins with, without a tag: Llama 3, and JSON as any model can be told to write it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .call_format import CallFormat
from .calls import Calls
from .cursor import Cursor, Malformed, Steps
from .json_calls import read_calls
from .json_text import read_value
from .tagged_calls import json_layout

_PYTHON_TAG = "<|python_tag|>"
_DOTTED_NAME = re.compile(r"[\w.]*")
_FENCE = "```"
_GENERIC_LAYOUT = replace(json_layout(is_list=True), is_list_optional=True)


def _read_bare(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    if (yield from cursor.peek()) not in ("{", "["):
        raise Malformed
    yield from read_calls(cursor, calls)


def _read_fenced(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    """As bare, or within a block of code, as which many models show JSON."""
    fence = yield from cursor.literal(f"{_FENCE}json", _FENCE)
    yield from cursor.blanks()
    yield from _read_bare(cursor, calls, marker)
    if fence:
        yield from cursor.closer(_FENCE)


def _read_python_tag(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    """JSON, or `name.call(key="value")` as Llama 3.1 writes calls of tools that it was trained on."""
    yield from cursor.blanks()
    if (yield from cursor.peek()) in ("{", "["):
        yield from read_calls(cursor, calls)
        return
    name = (yield from cursor.match(_DOTTED_NAME)).removesuffix(".call")
    calls.parameters(name)
    if (yield from cursor.peek()) != "(":
        raise Malformed
    arguments = yield from read_value(cursor)
    yield calls.whole(name, _keyword_arguments(f"call{arguments}"))


def _keyword_arguments(text: str) -> dict[str, Any]:
    """The arguments of a Python call that holds constants only. Errors: Malformed."""
    try:
        tree = ast.parse(text, mode="eval").body
        if not isinstance(tree, ast.Call) or tree.args:
            raise Malformed
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in tree.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Malformed from None


LLAMA = CallFormat(
    "llama",
    ("<|python_tag|>",),
    (_PYTHON_TAG,),
    _read_python_tag,
    json_layout(names=("name", "parameters")),
    begin=_read_bare,
    specials=(_PYTHON_TAG,),
)
LLAMA_PLAIN = replace(LLAMA, name="llama-3.2", signs=("ipython", '"parameters"'))
GENERIC = CallFormat("generic", (), (), _read_bare, _GENERIC_LAYOUT, begin=_read_fenced)


def bare_format(names: tuple[str, str]) -> CallFormat:
    """The row of a Go template without a tag: an answer that begins with JSON is a call. `names` are of its keys."""
    return CallFormat("bare", (), (), _read_bare, json_layout(names=names), begin=_read_bare)


def describe_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """What a system message tells a model whose template knows no tools: these, and the form of GENERIC."""
    lines = [json.dumps(tool["function"], ensure_ascii=False) for tool in tools]
    return "\n".join(
        (
            "You may call these functions. Each is described in JSON, its parameters by a JSON schema:",
            "",
            *lines,
            "",
            "To call a function, answer with one JSON object and nothing else:",
            '{"name": "the name of the function", "arguments": {"the name of a parameter": "its value"}}',
            "To call several at once, answer with a list of such objects. Otherwise answer in plain text.",
        )
    )
