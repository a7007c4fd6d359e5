"""Rows for Cohere's models: Command-R names its actions in a block of JSON, Command-R7B and A in tags."""

from __future__ import annotations

from .call_format import CallFormat, Layout
from .calls import Calls
from .cursor import Cursor, Steps
from .json_calls import read_calls

_FENCE = "```"
_ACTION = "Action:"
_START, _END = "<|START_ACTION|>", "<|END_ACTION|>"


def _read_block(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    yield from cursor.blanks()
    yield from cursor.expect(f"{_FENCE}json", _FENCE)
    yield from read_calls(cursor, calls)
    yield from cursor.closer(_FENCE)


def _read_action(cursor: Cursor, calls: Calls, marker: str) -> Steps[None]:
    yield from read_calls(cursor, calls)
    yield from cursor.closer(_END)


COMMAND_R = CallFormat(
    "command-r",
    (_ACTION, f"{_FENCE}json", '"tool_name"'),
    (_ACTION,),
    _read_block,
    Layout(
        '    {\n        "tool_name": "',
        '",\n        "parameters": ',
        "\n    }",
        f"{_ACTION} {_FENCE}json\n[\n",
        f"\n]{_FENCE}",
        ",\n",
        name_is_json=True,
    ),
)
# The ids of calls are numbers from 0 in training; nobody reads them here.
COMMAND_R7B = CallFormat(
    "command-r7b",
    (_START,),
    (_START,),
    _read_action,
    Layout(
        '    {"tool_call_id": "0", "tool_name": "',
        '", "parameters": ',
        "}",
        f"{_START}[\n",
        f"\n]{_END}",
        ",\n",
        name_is_json=True,
    ),
    dropped=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
    specials=(_START, _END),
)
