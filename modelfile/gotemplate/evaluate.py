"""Runs a tree over values, as Go's text/template does, with bounded work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto

from . import printing
from .functions import FUNCTIONS, Function
from .nodes import (
    Action,
    Block,
    Branch,
    Break,
    Call,
    Chain,
    Command,
    Dot,
    Field,
    Invoke,
    Literal,
    Nil,
    Node,
    Operand,
    Pipe,
    Range,
    Text,
    Variable,
    invalid,
)
from .values import NO_VALUE, Fault, NoValue, Value, clean_text, find_field, is_list, is_true, type_name

# Work of one execution. A conversation of thousands of messages takes some hundred thousand steps.
_MAX_STEPS = 1 << 20
# Characters written, and handled by functions.
_MAX_CHARS = 1 << 24
_CHARS_OF_ITEM = 1 / 16
_MAX_INVOKED = 40


class _Missing(Enum):
    """No value comes from an earlier command of the pipeline."""

    MISSING = auto()


class _Jump(Enum):
    BREAK = auto()
    CONTINUE = auto()


_MISSING = _Missing.MISSING


def execute(source: str, templates: Mapping[str, Block], data: Value) -> str:
    """The text that the template "" makes of `data`. Errors: InvalidTemplate with the place."""
    execution = _Execution(source, templates)
    try:
        execution.run("", data)
    except Fault as fault:
        raise invalid(source, execution.position, str(fault)) from None
    except RecursionError:
        raise invalid(source, execution.position, "it is nested, or calls itself, too deeply") from None
    return clean_text("".join(execution.output))


class _Execution:
    """One run: the variables in sight, the output so far, and the account of work."""

    def __init__(self, source: str, templates: Mapping[str, Block]) -> None:
        self.output: list[str] = []
        self.position = 0
        self._templates = templates
        self._variables: list[tuple[str, Value]] = []
        self._num_steps = 0
        self._num_chars = 0.0
        self._num_invoked = 0

    def run(self, name: str, dot: Value) -> None:
        """A template by name, with variables of its own."""
        if name not in self._templates:
            raise Fault(f"template {name[:60]!r} not defined")
        if self._num_invoked >= _MAX_INVOKED:
            raise Fault(f"templates invoke each other more than {_MAX_INVOKED} deep")
        outside, self._variables = self._variables, [("$", dot)]
        self._num_invoked += 1
        self._walk_block(self._templates[name], dot)
        self._num_invoked -= 1
        self._variables = outside

    # Account

    def _step(self, position: int) -> None:
        self.position = position
        self._num_steps += 1
        if self._num_steps > _MAX_STEPS:
            raise Fault("it loops more often than any prompt needs")

    def _charge(self, value: Value) -> None:
        if isinstance(value, str):
            self._spend(len(value))
        elif isinstance(value, Mapping) or is_list(value):
            self._spend(len(value) * _CHARS_OF_ITEM)

    def _spend(self, num_chars: float) -> None:
        self._num_chars += num_chars
        if self._num_chars > _MAX_CHARS:
            raise Fault(f"it makes more than {_MAX_CHARS} characters")

    def _write(self, text: str) -> None:
        self._charge(text)
        self.output.append(text)

    # Nodes

    def _walk_block(self, block: Block, dot: Value) -> _Jump | None:
        for node in block:
            jump = self._walk(node, dot)
            if jump is not None:
                return jump
        return None

    def _walk(self, node: Node, dot: Value) -> _Jump | None:
        self._step(node.position)
        if isinstance(node, Text):
            self._write(node.text)
        elif isinstance(node, Action):
            value = self._pipe(node.pipe, dot)
            if not node.pipe.declared:
                self._write(printing.show_action(value))
        elif isinstance(node, Branch):
            return self._walk_branch(node, dot)
        elif isinstance(node, Range):
            return self._walk_range(node, dot)
        elif isinstance(node, Invoke):
            if node.name not in self._templates:
                raise Fault(f"template {node.name[:60]!r} not defined")
            self.run(node.name, self._pipe(node.pipe, dot) if node.pipe else NO_VALUE)
        else:
            return _Jump.BREAK if isinstance(node, Break) else _Jump.CONTINUE
        return None

    def _walk_branch(self, node: Branch, dot: Value) -> _Jump | None:
        mark = len(self._variables)
        body = node.otherwise
        for arm in node.arms:
            value = self._pipe(arm.pipe, dot)
            if is_true(value):
                body = arm.body
                dot = value if node.sets_dot else dot
                break
        jump = self._walk_block(body, dot)
        del self._variables[mark:]
        return jump

    def _walk_range(self, node: Range, dot: Value) -> _Jump | None:
        mark = len(self._variables)
        value = self._pipe(node.pipe, dot)
        entries = self._entries(node.pipe, value)
        inner = len(self._variables)
        jump = None
        is_empty = True
        for index, element in entries:
            is_empty = False
            self._step(node.position)
            self._set_range_variables(node.pipe, inner, index, element)
            jump = self._walk_block(node.body, element)
            del self._variables[inner:]
            if jump is _Jump.BREAK:
                break
        jump = self._walk_block(node.otherwise, dot) if is_empty else None
        del self._variables[mark:]
        return jump

    def _entries(self, pipe: Pipe, value: Value) -> Iterable[tuple[Value, Value]]:
        self._charge(value)
        if isinstance(value, bool | str | float | complex):
            raise Fault(f"range can't iterate over {printing.show(value)[:60]}")
        if isinstance(value, int):
            if len(pipe.declared) > 1:
                raise Fault(f"can't use {int(value)} to iterate over more than one variable")
            return ((NO_VALUE, type(value)(number)) for number in range(value))
        if isinstance(value, Mapping):
            return ((key, value[key]) for key in sorted(value))
        if is_list(value):
            return enumerate(value)
        if value is None or isinstance(value, NoValue):
            return ()
        raise Fault(f"range can't iterate over a value of type {type_name(value)}")

    def _set_range_variables(self, pipe: Pipe, top: int, index: Value, element: Value) -> None:
        values = (element,) if len(pipe.declared) == 1 else (index, element)
        for offset, (name, value) in enumerate(zip(pipe.declared, values, strict=False)):
            if pipe.assigns:
                self._assign(name, value)
            else:
                self._variables[top - len(pipe.declared) + offset] = (name, value)

    # Variables

    def _assign(self, name: str, value: Value) -> None:
        self._variables[self._find(name)] = (name, value)

    def _look_up(self, name: str) -> Value:
        return self._variables[self._find(name)][1]

    def _find(self, name: str) -> int:
        """The place of the variable that was declared last under a name."""
        top = len(self._variables) - 1
        for place in range(top, -1, -1):
            if self._variables[place][0] == name:
                self._spend(top - place)
                return place
        raise Fault(f"undefined variable: {name[:60]}")

    # Pipelines

    def _pipe(self, pipe: Pipe, dot: Value) -> Value:
        value: Value = _MISSING
        for command in pipe.commands:
            value = self._command(command, dot, value)
            if value is None:
                value = NO_VALUE
        for name in pipe.declared:
            if pipe.assigns:
                self._assign(name, value)
            else:
                self._variables.append((name, value))
        return value

    def _command(self, command: Command, dot: Value, final: Value) -> Value:
        first = command.operands[0]
        self._step(first.position)
        if isinstance(first, Call):
            return self._call(first, command.operands[1:], dot, final)
        if len(command.operands) > 1 or final is not _MISSING:
            if isinstance(first, Field | Chain) or (isinstance(first, Variable) and first.names):
                # Go looks the field up first, and may fail on that.
                self._operand(first, dot)
            raise Fault("can't give an argument to what is no function")
        if isinstance(first, Nil):
            raise Fault("nil is not a command")
        return self._operand(first, dot)

    def _operand(self, operand: Operand, dot: Value) -> Value:
        if isinstance(operand, Dot):
            return dot
        if isinstance(operand, Literal):
            if operand.value is None:
                self.position = operand.position
                raise Fault(f"{operand.text[:40]} overflows int")
            return operand.value
        if isinstance(operand, Field):
            return self._fields(dot, operand.names, operand.position)
        if isinstance(operand, Variable):
            return self._fields(self._look_up(operand.name), operand.names, operand.position)
        if isinstance(operand, Pipe):
            return self._pipe(operand, dot)
        if isinstance(operand, Call):
            return self._call(operand, (), dot, _MISSING)
        if isinstance(operand, Chain):
            return self._fields(self._operand(operand.operand, dot), operand.names, operand.position)
        return NO_VALUE

    def _fields(self, value: Value, names: tuple[str, ...], position: int) -> Value:
        self.position = position
        for name in names:
            value = find_field(value, name)
        return value

    # Functions

    def _call(self, node: Call, operands: tuple[Operand, ...], dot: Value, final: Value) -> Value:
        function = FUNCTIONS[node.name]
        self._check_count(node, function, len(operands) + (final is not _MISSING))
        if node.name in ("and", "or"):
            return self._decide(node.name == "or", operands, dot, final)
        values = [self._argument(function, number, operand, dot) for number, operand in enumerate(operands)]
        if final is not _MISSING:
            self._check_text(function, len(values), final)
            values.append(final)
        self._step(node.position)
        for value in values:
            self._charge(value)
        try:
            result = function.call(*values)
        except Fault as fault:
            raise Fault(f"error calling {node.name}: {fault}") from None
        self._charge(result)
        return result

    def _check_count(self, node: Call, function: Function, count: int) -> None:
        self.position = node.position
        if count < function.num_least or (function.num_most is not None and count > function.num_most):
            least = "at least " if function.num_most is None else ""
            raise Fault(f"wrong number of args for {node.name}: want {least}{function.num_least} got {count}")

    def _argument(self, function: Function, number: int, operand: Operand, dot: Value) -> Value:
        self._step(operand.position)
        value = self._operand(operand, dot)
        self._check_text(function, number, value)
        return value

    def _check_text(self, function: Function, number: int, value: Value) -> None:
        if number < function.takes_text and not isinstance(value, str):
            raise Fault(f"wrong type for value; expected string; got {type_name(value)}")

    def _decide(self, stops_at: bool, operands: tuple[Operand, ...], dot: Value, final: Value) -> Value:
        value: Value = NO_VALUE
        for operand in operands:
            self._step(operand.position)
            value = self._operand(operand, dot)
            if is_true(value) is stops_at:
                return value
        return value if final is _MISSING else final
