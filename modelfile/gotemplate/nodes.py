"""The tree of a Go template. Every node knows its offset in the source, from which errors tell line and column."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import InvalidTemplate


@dataclass(frozen=True, slots=True)
class Dot:
    position: int


@dataclass(frozen=True, slots=True)
class Nil:
    position: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is None for an integer that only fits Go's uint64: an error once it is evaluated."""

    position: int
    value: bool | int | float | complex | str | None
    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """`.A.B` of dot."""

    position: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x` or `$x.A.B`; `name` holds the dollar sign."""

    position: int
    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """The name of a function; its arguments are the other operands of the command."""

    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """`(pipeline).A.B` or `function.A`."""

    position: int
    operand: Operand
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    position: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    """Commands joined by `|`. `declared` are variables that get the result; `assigns` tells `=` from `:=`."""

    position: int
    declared: tuple[str, ...]
    assigns: bool
    commands: tuple[Command, ...]


Operand = Dot | Nil | Literal | Field | Variable | Call | Chain | Pipe


@dataclass(frozen=True, slots=True)
class Text:
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    position: int
    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Arm:
    pipe: Pipe
    body: Block


@dataclass(frozen=True, slots=True)
class Branch:
    """`if`, or `with` when `sets_dot`; the arms after the first are its `else if` or `else with`."""

    position: int
    sets_dot: bool
    arms: tuple[Arm, ...]
    otherwise: Block


@dataclass(frozen=True, slots=True)
class Range:
    position: int
    pipe: Pipe
    body: Block
    otherwise: Block


@dataclass(frozen=True, slots=True)
class Invoke:
    """`{{template "name" pipeline}}`."""

    position: int
    name: str
    pipe: Pipe | None


@dataclass(frozen=True, slots=True)
class Break:
    position: int


@dataclass(frozen=True, slots=True)
class Continue:
    position: int


Node = Text | Action | Branch | Range | Invoke | Break | Continue
Block = tuple[Node, ...]


def invalid(source: str, position: int, message: str) -> InvalidTemplate:
    """The error of a template, with the place that `position` is."""
    line = source.count("\n", 0, position) + 1
    column = position - source.rfind("\n", 0, position)
    return InvalidTemplate(f"template: line {line}, column {column}: {message}")
