"""The rules by which Ollama makes a prompt of messages with a Go template (contract section 15)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import InvalidTemplate
from ...core.types import Image, Message, Thinking, ToolCall, ToolResult
from .template import GoTemplate
from .values import JSONList, JSONMap, NilJSONList, NilSlice, Shape, Struct, TypeNames, Value

KNOWN_NAMES = frozenset(
    ("System", "Messages", "Tools", "Prompt", "Suffix", "Response", "Think", "ThinkLevel", "IsThinkSet")
)
_SURROGATES = re.compile("[\ud800-\udfff]")

_MESSAGE = Shape(
    "*template.templateMessage",
    {
        "Role": "role",
        "Content": "content",
        "Thinking": "thinking",
        "Images": "images",
        "ToolCalls": "tool_calls",
        "ToolName": "tool_name",
        "ToolCallID": "tool_call_id",
    },
    frozenset(("Thinking", "Images", "ToolCalls", "ToolName", "ToolCallID")),
)
_CALL = Shape("template.templateToolCall", {"ID": "id", "Function": "function"}, frozenset(("ID",)))
_CALLED = Shape("template.templateToolCallFunction", {"Index": "index", "Name": "name", "Arguments": "arguments"})
_TOOL = Shape(
    "template.templateTool",
    {"Type": "type", "Items": "items", "Function": "function"},
    frozenset(("Items",)),
    prints_json=True,
)
_FUNCTION = Shape(
    "template.templateToolFunction",
    {"Name": "name", "Description": "description", "Parameters": "parameters"},
    prints_json=True,
)
_PARAMETERS = Shape(
    "template.templateToolFunctionParameters",
    {"Type": "type", "Defs": "$defs", "Items": "items", "Required": "required", "Properties": "properties"},
    frozenset(("Defs", "Items", "Required")),
    prints_json=True,
)
_PROPERTY_NAMES = {
    "AnyOf": "anyOf",
    "Type": "type",
    "Items": "items",
    "Description": "description",
    "Enum": "enum",
    "Properties": "properties",
    "Required": "required",
}
_PROPERTY = Shape("api.ToolProperty", _PROPERTY_NAMES, frozenset(_PROPERTY_NAMES))


class GoPrompt:
    """A template with the rules that feed it. Any thread may use it."""

    def __init__(self, source: str, blank_unknown: bool = False) -> None:
        """Compile. Names that no request fills print `<no value>` as in Go, or nothing with `blank_unknown`.

        Errors: InvalidTemplate with line and column.
        """
        template = GoTemplate(source)
        self._blanks = dict.fromkeys(template.unknown_names(KNOWN_NAMES), "") if blank_unknown else {}
        self._takes_messages = template.mentions("messages")
        if not self._takes_messages and not template.mentions("response"):
            template = template.with_field("Response")
        self._template = template
        self._last_turn = template.cut_after("Response")

    @property
    def vars(self) -> tuple[str, ...]:
        """Names that the template mentions, in lower case and sorted; with `response` where that was added."""
        return self._template.vars

    def mentions(self, name: str) -> bool:
        """Whether the template mentions a field, such as `tools` or `suffix`, in any case."""
        return self._template.mentions(name)

    def unknown_names(self) -> tuple[str, ...]:
        """Names in the template that no request ever fills."""
        return self._template.unknown_names(KNOWN_NAMES)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] | None = None,
        think: bool | str | None = None,
    ) -> str:
        """The prompt. `think` is None when the request does not say, or a level such as "high".

        Errors: InvalidTemplate with the place, where the template fails on these messages.
        """
        turns = list(_merge_neighbours(messages))
        if not self._takes_messages:
            return self._render_turns(turns, _thinking_values(think))
        data = {
            "System": "\n\n".join(turn.content for turn in _split(messages) if turn.role == "system"),
            "Messages": _message_values(turns),
            "Tools": _tools_value(tools or ()),
            "Response": "",
            **_thinking_values(think),
        }
        return self._template.execute(self._blanks | data)

    def render_infill(self, prompt: str, suffix: str, think: bool | str | None = None) -> str:
        """The prompt for the text between `prompt` and `suffix`. Errors: InvalidTemplate with the place."""
        data = {"Prompt": _clean(prompt), "Suffix": _clean(suffix), "Response": "", **_thinking_values(think)}
        return self._template.execute(self._blanks | data)

    def _render_turns(self, turns: Sequence[_Turn], thinking: Mapping[str, Value]) -> str:
        """Once per turn: a turn ends where its place for the next message is taken. The last one stays open."""
        finished: list[str] = []
        values = {"System": "", "Prompt": "", "Response": ""}
        for turn in turns:
            place = {"system": "System", "user": "Prompt", "assistant": "Response"}.get(turn.role)
            if place is None:
                continue
            taken = {"System": ("Prompt", "Response"), "Prompt": ("Response",), "Response": ()}[place]
            if any(values[name] for name in taken):
                finished.append(self._template.execute({**self._blanks, **values, **thinking}))
                values = dict.fromkeys(values, "")
            values[place] = turn.content
        finished.append(self._last_turn.execute({**self._blanks, **values, **thinking}))
        return "".join(finished)


@dataclass(slots=True)
class _Turn:
    """A message as templates know it."""

    role: str
    content: str
    thinking: str = ""
    images: list[bytes] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    tool_name: str = ""
    tool_call_id: str = ""


def _split(messages: Sequence[Message]) -> Iterator[_Turn]:
    """One turn a message; a message that holds several tool results gives one for each."""
    for message in messages:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "tool" and results:
            for result in results:
                yield _Turn("tool", _clean(result.text), tool_name=result.name, tool_call_id=result.id)
            continue
        yield _Turn(
            message.role,
            _clean(message.text),
            "".join(_clean(part.text) for part in message.parts if isinstance(part, Thinking)),
            [part.data for part in message.parts if isinstance(part, Image)],
            [part for part in message.parts if isinstance(part, ToolCall)],
        )


def _merge_neighbours(messages: Sequence[Message]) -> Iterator[_Turn]:
    """Neighbours of one role as one, with a blank line between; tool messages stay apart."""
    last: _Turn | None = None
    for turn in _split(messages):
        if last is None or turn.role != last.role or turn.role == "tool":
            if last is not None:
                yield last
            last = turn
            continue
        last.content += f"\n\n{turn.content}"
        last.thinking = "\n\n".join(filter(None, (last.thinking, turn.thinking)))
        last.images += turn.images
        last.calls += turn.calls
    if last is not None:
        yield last


def _thinking_values(think: bool | str | None) -> dict[str, Value]:
    level = think if isinstance(think, str) else ""
    return {"Think": bool(think), "ThinkLevel": level, "IsThinkSet": think is not None}


def _clean(text: str) -> str:
    """Text without lone surrogates, which in a template stand for bytes that a slice cut out."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _message_values(turns: Sequence[_Turn]) -> list[Struct]:
    try:
        return [_message_value(turn) for turn in turns]
    except RecursionError:
        raise InvalidTemplate("template: the arguments of a tool call are nested too deeply") from None


def _message_value(turn: _Turn) -> Struct:
    values = {
        "Role": turn.role,
        "Content": turn.content,
        "Thinking": turn.thinking,
        "Images": turn.images or NilSlice(),
        "ToolCalls": [_call_value(index, call) for index, call in enumerate(turn.calls)] or NilSlice(),
        "ToolName": turn.tool_name,
        "ToolCallID": turn.tool_call_id,
    }
    return Struct(_MESSAGE, values)


def _call_value(index: int, call: ToolCall) -> Struct:
    arguments = JSONMap({key: _doubles(value) for key, value in call.arguments.items()})
    return Struct(
        _CALL,
        {"ID": call.id, "Function": Struct(_CALLED, {"Index": index, "Name": call.name, "Arguments": arguments})},
    )


def _tools_value(tools: Sequence[Mapping[str, Any]]) -> Sequence[Struct]:
    try:
        return JSONList(map(_tool_value, tools)) if tools else NilJSONList()
    except RecursionError:
        raise InvalidTemplate("template: a tool's parameters are nested too deeply") from None


def _tool_value(tool: Mapping[str, Any]) -> Struct:
    function = _mapping(tool.get("function"))
    parameters = _mapping(function.get("parameters"))
    values = {
        "Type": _text(parameters.get("type")),
        "Defs": _doubles(parameters.get("$defs")),
        "Items": _doubles(parameters.get("items")),
        "Required": _texts(parameters.get("required")),
        "Properties": _properties(parameters.get("properties")),
    }
    described = {
        "Name": _text(function.get("name")),
        "Description": _text(function.get("description")),
        "Parameters": Struct(_PARAMETERS, values),
    }
    return Struct(
        _TOOL,
        {
            "Type": _text(tool.get("type")),
            "Items": _doubles(tool.get("items")),
            "Function": Struct(_FUNCTION, described),
        },
    )


def _properties(properties: Any) -> JSONMap | None:
    if not isinstance(properties, Mapping):
        return None
    return JSONMap({name: _property_value(_mapping(content)) for name, content in properties.items()})


def _property_value(content: Mapping[str, Any]) -> Struct:
    names = content.get("type")
    any_of = content.get("anyOf")
    values = {
        "AnyOf": [_property_value(_mapping(item)) for item in any_of] if isinstance(any_of, list) else NilSlice(),
        "Type": TypeNames([names] if isinstance(names, str) else _texts(names)),
        "Items": _doubles(content.get("items")),
        "Description": _text(content.get("description")),
        "Enum": _doubles(content.get("enum")) if isinstance(content.get("enum"), list) else NilSlice(),
        "Properties": _properties(content.get("properties")),
        "Required": _texts(content.get("required")),
    }
    return Struct(_PROPERTY, values)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return _clean(value) if isinstance(value, str) else ""


def _texts(value: Any) -> Sequence[str]:
    return [_clean(item) for item in value if isinstance(item, str)] if isinstance(value, list) else NilSlice()


def _doubles(value: Any) -> Value:
    """JSON as Go reads it where no type is told: every number is a double."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _doubles(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_doubles(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
