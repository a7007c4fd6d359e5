"""What a Modelfile asks for, as /api/create takes it (contract sections 8 and 14). No disk is touched: paths stay text,
for the caller to look up."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import msgspec

from ..core.errors import InvalidModelfile
from ..core.options import OPTIONS, RETIRED, SKIPPED_IN_MODELFILES, Kind, nearest, parse_option
from .parser import Command, Modelfile

# The key of a create request and the command it comes from are the same word; the last command of a kind wins.
_LAST_WINS = ("template", "system", "renderer", "parser")

# As Ollama reads versions: a `v` in front is fine, and minor and patch may be left out.
_NUMBER = r"(?:0|[1-9]\d*)"
_PRERELEASE = rf"(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SUFFIXES = rf"(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_SEMVER = re.compile(rf"v?({_NUMBER}(?:\.{_NUMBER}(?:\.{_NUMBER}{_SUFFIXES})?)?)", re.ASCII)


class Reference(msgspec.Struct, frozen=True):
    """A model name or path as it was written, and its line."""

    value: str
    line: int


class ModelfileRequest(msgspec.Struct, frozen=True):
    """`request` holds the body of a create request without what `froms`, `adapters` and `draft` become once they are
    looked up. A key is there only when the file sets it, so an empty `system` clears the parent's."""

    froms: tuple[Reference, ...]
    adapters: tuple[Reference, ...]
    draft: Reference | None
    request: dict[str, Any]
    warnings: tuple[str, ...]


def to_request(modelfile: Modelfile) -> ModelfileRequest:
    """Check and type every command.

    Errors: InvalidModelfile for an unknown parameter, a value of another type than its parameter's, a REQUIRES that
    is no version, and a FROM, ADAPTER or DRAFT that names nothing.
    """
    commands: defaultdict[str, list[Command]] = defaultdict(list)
    for command in modelfile.commands:
        commands[command.keyword].append(command)
    parameters, warnings = _type_parameters(commands["parameter"])
    versions = [_read_version(command) for command in commands["requires"]]
    request: dict[str, Any] = {key: commands[key][-1].value for key in _LAST_WINS if commands[key]}
    if commands["license"]:
        request["license"] = [command.value for command in commands["license"]]
    if commands["message"]:
        request["messages"] = [{"role": command.argument, "content": command.value} for command in commands["message"]]
    if parameters:
        request["parameters"] = parameters
    if versions:
        request["requires"] = versions[-1]
    drafts = _refer(commands["draft"])
    return ModelfileRequest(
        froms=_refer(commands["from"]),
        adapters=_refer(commands["adapter"]),
        draft=drafts[-1] if drafts else None,
        request=request,
        warnings=tuple(warnings),
    )


def _refer(commands: list[Command]) -> tuple[Reference, ...]:
    for command in commands:
        if not command.value.strip():
            message = f"{command.keyword.upper()} names nothing: give a model or a path"
            raise InvalidModelfile(message, command.line, command.column)
    return tuple(Reference(command.value, command.line) for command in commands)


def _type_parameters(commands: list[Command]) -> tuple[dict[str, Any], list[str]]:
    parameters: dict[str, Any] = {}
    warnings: list[str] = []
    for command in commands:
        name = command.argument
        if name in RETIRED:
            warnings.append(f"line {command.line}: parameter {name!r} has no effect and was skipped")
            continue
        if name in SKIPPED_IN_MODELFILES:
            warnings.append(f"line {command.line}: parameter {name!r} counts only in requests and was skipped")
            continue
        value = _read_parameter(command)
        if OPTIONS[name].kind is Kind.STRINGS:
            value = parameters.get(name, []) + value
        parameters[name] = value
    return parameters, warnings


def _read_parameter(command: Command) -> Any:
    if command.argument not in OPTIONS:
        near = nearest(command.argument, list(OPTIONS))
        hint = f"; did you mean {near!r}?" if near else ""
        message = f"unknown parameter {command.argument[:60]!r}{hint}"
        raise InvalidModelfile(message, command.line, command.column)
    try:
        return parse_option(command.argument, [command.value])
    except ValueError as error:
        raise InvalidModelfile(f"parameter {error}", command.line, command.column) from None


def _read_version(command: Command) -> str:
    found = _SEMVER.fullmatch(command.value)
    if found is None:
        raise InvalidModelfile("requires must be a valid semver (e.g. 0.14.0)", command.line, command.column)
    return found.group(1)
