"""Tools and the choice among them, checked: what every dialect that offers functions to a model needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import InvalidRequest
from ...core.types import ToolPolicy

Tools = tuple[dict[str, Any], ...]
_EXPECTED = '"none", "auto", "required" or {"type": "function", "function": {"name": …}}'


def check_tools(tools: Sequence[dict[str, Any]] | None, where: str = "tools") -> Tools:
    """Tools in OpenAI's form. Errors: InvalidRequest for one that is no function with a name, or is there twice."""
    seen: set[str] = set()
    for index, tool in enumerate(tools or ()):
        place = f"{where}[{index}]"
        if tool.get("type", "function") != "function":
            raise InvalidRequest(f'{place}.type must be "function", not {repr(tool.get("type"))[:40]}')
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            raise InvalidRequest(f"{place}.function must be an object with a name")
        if not isinstance(function.get("parameters") or {}, dict):
            raise InvalidRequest(f"{place}.function.parameters must be a JSON Schema object")
        if function["name"] in seen:
            raise InvalidRequest(f"{place}.function.name {function['name'][:60]!r} is there twice")
        seen.add(function["name"])
    return tuple({"type": "function", **tool} for tool in tools or ())


def choose_tools(tools: Tools, choice: Any, parallel: bool | None) -> tuple[Tools, ToolPolicy]:
    """What `tool_choice` makes of the tools: those that the model is told of, and whether it must call one.

    Errors: InvalidRequest for a choice of another form, or of a tool that is not offered.
    """
    policy = ToolPolicy(parallel=parallel is not False)
    if choice is None or choice == "auto":
        return tools, policy
    if choice == "none":
        return (), policy
    if choice in ("required", "any"):
        if not tools:
            raise InvalidRequest(f'tool_choice is "{choice}", but no tools are offered')
        return tools, ToolPolicy(True, (), policy.parallel)
    names, is_required = _chosen_names(choice)
    unknown = next((name for name in names if name not in _names(tools)), None)
    if unknown is not None:
        raise InvalidRequest(f"tool_choice names {unknown[:60]!r}, which is not among the tools")
    return tools, ToolPolicy(is_required, names, policy.parallel and len(names) != 1)


def _names(tools: Tools) -> set[str]:
    return {tool["function"]["name"] for tool in tools}


def _chosen_names(choice: Any) -> tuple[tuple[str, ...], bool]:
    """The names in a choice and whether one of them must be called. OpenAI's flat and nested forms are both read."""
    if isinstance(choice, dict) and choice.get("type") == "function":
        nested = choice.get("function")
        name = nested.get("name") if isinstance(nested, dict) else choice.get("name")
        if isinstance(name, str):
            return (name,), True
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools") if isinstance(choice.get("allowed_tools"), dict) else choice
        entries = allowed.get("tools") if isinstance(allowed, dict) else None
        if isinstance(allowed, dict) and isinstance(entries, list) and entries:
            found = [_chosen_names(entry)[0] for entry in entries]
            return tuple(name for names in found for name in names), allowed.get("mode") == "required"
    raise InvalidRequest(f"tool_choice must be {_EXPECTED}, not {repr(choice)[:60]}")
