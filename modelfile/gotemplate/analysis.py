"""What can be told of a tree without running it: the names it mentions, and what of it makes up an open last turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from .nodes import Action, Arm, Block, Branch, Chain, Field, Invoke, Node, Operand, Pipe, Range, Variable


def node_pipes(node: Node) -> Iterator[Pipe]:
    """The pipelines of a node itself, not of its blocks."""
    if isinstance(node, Branch):
        yield from (arm.pipe for arm in node.arms)
    elif isinstance(node, Action | Range) or (isinstance(node, Invoke) and node.pipe):
        yield from (pipe for pipe in (node.pipe,) if pipe)


def node_blocks(node: Node) -> Iterator[Block]:
    """The blocks of a node."""
    if isinstance(node, Branch):
        yield from (arm.body for arm in node.arms)
        yield node.otherwise
    elif isinstance(node, Range):
        yield node.body
        yield node.otherwise


def pipe_operands(pipe: Pipe, *, with_chains: bool) -> Iterator[Operand]:
    """All operands, also of pipelines in parentheses; those that fields are taken of only `with_chains`."""
    for command in pipe.commands:
        for operand in command.operands:
            yield from _inner_operands(operand, with_chains)


def _inner_operands(operand: Operand, with_chains: bool) -> Iterator[Operand]:
    yield operand
    if isinstance(operand, Pipe):
        yield from pipe_operands(operand, with_chains=with_chains)
    elif isinstance(operand, Chain) and with_chains:
        yield from _inner_operands(operand.operand, with_chains)


def block_operands(block: Block, *, with_chains: bool) -> Iterator[Operand]:
    """The operands of a block and of all blocks within."""
    for node in block:
        for pipe in node_pipes(node):
            yield from pipe_operands(pipe, with_chains=with_chains)
        for inner in node_blocks(node):
            yield from block_operands(inner, with_chains=with_chains)


def operand_names(operand: Operand) -> tuple[str, ...]:
    """Names of fields, and of the variable, dollar sign and all."""
    if isinstance(operand, Variable):
        return (operand.name, *operand.names)
    return operand.names if isinstance(operand, Field | Chain) else ()


class TopNames:
    """Finds the fields of the data itself: those of `$`, and of dot where nothing has changed it."""

    def __init__(self, templates: Mapping[str, Block]) -> None:
        self._templates = templates
        self._invoked = {""}
        self.names: dict[str, None] = {}
        self._walk_block(templates.get("", ()), True)

    def _walk_block(self, block: Block, dot_is_data: bool) -> None:
        for node in block:
            for pipe in node_pipes(node):
                self._note(pipe, dot_is_data)
            if isinstance(node, Invoke) and node.pipe and _passes_data(node.pipe, dot_is_data):
                self._invoke(node.name)
            for inner, changes_dot in _blocks_with_dots(node):
                self._walk_block(inner, dot_is_data and not changes_dot)

    def _invoke(self, name: str) -> None:
        if name in self._templates and name not in self._invoked:
            self._invoked.add(name)
            self._walk_block(self._templates[name], True)

    def _note(self, pipe: Pipe, dot_is_data: bool) -> None:
        for operand in pipe_operands(pipe, with_chains=True):
            is_data = isinstance(operand, Field) and dot_is_data
            is_data = is_data or (isinstance(operand, Variable) and operand.name == "$")
            if is_data and isinstance(operand, Field | Variable) and operand.names:
                self.names.setdefault(operand.names[0])


def _blocks_with_dots(node: Node) -> Iterator[tuple[Block, bool]]:
    """The blocks of a node, each with whether dot is another one there."""
    if isinstance(node, Branch):
        yield from ((arm.body, node.sets_dot) for arm in node.arms)
        yield node.otherwise, False
    elif isinstance(node, Range):
        yield node.body, True
        yield node.otherwise, False


def _passes_data(pipe: Pipe, dot_is_data: bool) -> bool:
    if len(pipe.commands) != 1 or len(pipe.commands[0].operands) != 1:
        return False
    operand = pipe.commands[0].operands[0]
    if isinstance(operand, Variable):
        return operand.name == "$" and not operand.names
    return dot_is_data and type(operand).__name__ == "Dot"


def cut_after(block: Block, name: str) -> tuple[Block, bool]:
    """The block up to the first action that prints the field `name`, and whether there is one.

    Each arm of a branch is cut for itself; nothing that follows a branch with a cut arm stays. As in Ollama, a
    condition or a loop's own pipeline does not count.
    """
    kept: list[Node] = []
    for node in block:
        node, is_cut = _cut_node(node, name)
        kept.append(node)
        if is_cut:
            return tuple(kept), True
    return tuple(kept), False


def _cut_node(node: Node, name: str) -> tuple[Node, bool]:
    if isinstance(node, Action):
        operands = pipe_operands(node.pipe, with_chains=True)
        return node, any(name in operand_names(operand) for operand in operands)
    if isinstance(node, Branch):
        bodies = [cut_after(arm.body, name) for arm in node.arms]
        arms = tuple(Arm(arm.pipe, body) for arm, (body, _) in zip(node.arms, bodies, strict=True))
        otherwise, is_cut = cut_after(node.otherwise, name)
        return replace(node, arms=arms, otherwise=otherwise), is_cut or any(cut for _, cut in bodies)
    if isinstance(node, Range):
        body, is_cut = cut_after(node.body, name)
        otherwise, is_else_cut = cut_after(node.otherwise, name)
        return replace(node, body=body, otherwise=otherwise), is_cut or is_else_cut
    return node, False
