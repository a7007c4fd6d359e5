"""What a Go template tells of a model's answers: the texts around calls and around thinking, read off its tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..gotemplate.analysis import node_blocks, node_pipes, operand_names, pipe_operands
from ..gotemplate.functions import FUNCTIONS
from ..gotemplate.nodes import Action, Block, Branch, Node, Range, Text
from ..gotemplate.parser import parse
from .thinking import KNOWN_TAGS, ThinkingTags

# What stands for the name and the arguments in the text of a call.
_NAME, _ARGUMENTS = "\ue000", "\ue001"
_NAME_KEY = re.compile(rf'"(\w+)"\s*:\s*"?{_NAME}')
_ARGUMENTS_KEY = re.compile(rf'"(\w+)"\s*:\s*"?{_ARGUMENTS}')
_TAG = re.compile(r"<([^<>\s]+)>|\[([^\[\]\s]+)\]")
_LAST_TAG = re.compile(r"[<\[◁][^<>\[\]\n]+[>\]▷]$")
_FIRST_TAG = re.compile(r"[<\[◁][^<>\[\]\n]+[>\]▷]")


class CallText(NamedTuple):
    """How a template writes calls. `text` is all that it writes there; `tag` and `close` stand around the JSON.

    `tag` is "" where JSON stands alone, and `names` are the keys of a call's name and arguments.
    """

    text: str
    tag: str
    close: str
    names: tuple[str, str]
    is_list: bool


def find_calls(source: str) -> CallText | None:
    """How a template writes the calls of a message, or None when it writes none. Errors: InvalidTemplate."""
    for block in parse(source, FUNCTIONS).values():
        for body in _call_bodies(block):
            text = "".join(_texts(body))
            if _ARGUMENTS in text:
                return _describe(text)
    return None


def find_thinking(source: str) -> ThinkingTags | None:
    """The texts around the thinking of a message. Errors: InvalidTemplate."""
    for block in parse(source, FUNCTIONS).values():
        for before, after in _around_thinking(block):
            tags = _read_tags(before.rstrip(), after.lstrip())
            if tags is not None:
                return tags
    return None


def _call_bodies(block: Block) -> Iterator[Block]:
    """What is done where there are calls: the widest blocks first."""
    for node in block:
        if isinstance(node, Branch):
            yield from (arm.body for arm in node.arms if _mentions(arm.pipe, "ToolCalls"))
        elif isinstance(node, Range) and _mentions(node.pipe, "ToolCalls"):
            yield node.body
        for inner in node_blocks(node):
            yield from _call_bodies(inner)


def _mentions(pipe: object, name: str) -> bool:
    operands = pipe_operands(pipe, with_chains=True)  # type: ignore[arg-type]
    return any(name in operand_names(operand) for operand in operands)


def _texts(block: Block) -> Iterator[str]:
    """The text that a block writes, with signs for the name and the arguments of a call."""
    for node in block:
        if isinstance(node, Text):
            yield node.text
        elif isinstance(node, Action):
            yield _sign(node)
        for inner in node_blocks(node):
            yield from _texts(inner)


def _sign(node: Node) -> str:
    for pipe in node_pipes(node):
        if _mentions(pipe, "Arguments"):
            return _ARGUMENTS
        if _mentions(pipe, "Name"):
            return _NAME
    return ""


def _describe(text: str) -> CallText:
    before, brace, _ = text.partition("{")
    is_json = bool(brace) and _NAME not in before and _ARGUMENTS not in before
    tag = before.strip() if is_json else ""
    is_list = tag.endswith("[")
    tag = tag.removesuffix("[").strip().rpartition("\n")[2].strip()
    if "assistant" in tag:  # the head of the turn, which belongs to the prompt
        tag = ""
    name, arguments = _NAME_KEY.search(text), _ARGUMENTS_KEY.search(text)
    names = name[1] if name else "name", arguments[1] if arguments else "arguments"
    return CallText(text, tag, _closing(tag, text.rpartition(_ARGUMENTS)[2]), names, is_list)


def _closing(tag: str, after: str) -> str:
    """The tag that closes `tag`, if it stands in `after`; any other text there is not part of a call."""
    found = _TAG.fullmatch(tag)
    if not found:
        return ""
    inner = found[1] or found[2]
    closed = f"|/{inner[1:]}" if inner.startswith("|") else f"/{inner}"
    close = f"<{closed}>" if found[1] else f"[{closed}]"
    return close if close in after else ""


def _around_thinking(block: Block) -> Iterator[tuple[str, str]]:
    """The texts right before and after each place that prints thinking."""
    for index, node in enumerate(block):
        if isinstance(node, Action) and _mentions(node.pipe, "Thinking"):
            before = block[index - 1] if index else None
            after = block[index + 1] if index + 1 < len(block) else None
            if isinstance(before, Text) and isinstance(after, Text):
                yield before.text, after.text
        for inner in node_blocks(node):
            yield from _around_thinking(inner)


def _read_tags(before: str, after: str) -> ThinkingTags | None:
    for tags in KNOWN_TAGS:
        if before.endswith(tags.open) and after.startswith(tags.close):
            return tags
    opened, closed = _LAST_TAG.search(before), _FIRST_TAG.match(after)
    return ThinkingTags(opened[0], closed[0]) if opened and closed else None
