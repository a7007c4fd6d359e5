"""Anthropic's messages as ours: blocks to parts, and results of tools, which users send, to turns of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.errors import InvalidRequest, Unsupported
from ...core.types import Image, Message, Part, Text, Thinking, ToolCall, ToolResult
from .anthropic_bodies import Block, MessageTurn, Source
from .images import read_image

_ROLES = ("user", "assistant", "system")


def read_turns(turns: Sequence[MessageTurn]) -> tuple[Message, ...]:
    """All messages. Errors: InvalidRequest names the message and the block."""
    messages: list[Message] = []
    # Results name the call by id only; templates want the tool's name as well.
    names: dict[str, str] = {}
    for index, turn in enumerate(turns):
        where = f"messages[{index}]"
        if turn.role not in _ROLES:
            raise InvalidRequest(f"{where}.role {(turn.role or '')[:40]!r} must be one of {', '.join(_ROLES)}")
        if turn.content is None:
            raise InvalidRequest(f"{where}.content is required: a string or a list of blocks")
        parts = read_blocks(f"{where}.content", turn.content, names)
        messages += _split(turn.role, parts)
    return tuple(messages)


def join_text(where: str, content: str | Sequence[Block] | None) -> str:
    """The text of a system prompt: its blocks joined without a separator. Errors: InvalidRequest."""
    parts = read_blocks(where, content or "", {})
    if not all(isinstance(part, Text) for part in parts):
        raise InvalidRequest(f"{where} must be a string or a list of blocks of type text")
    return "".join(part.text for part in parts if isinstance(part, Text))


def read_blocks(where: str, content: str | Sequence[Block], names: dict[str, str]) -> list[Part]:
    """The parts of a message. `names` gathers what each call's tool is called. Errors: InvalidRequest."""
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Part] = []
    for index, block in enumerate(content):
        place = f"{where}[{index}]"
        reader = _READERS.get(block.type or "")
        if reader is None:
            known = ", ".join(_READERS)
            raise InvalidRequest(f"{place}.type must be one of {known}, not {(block.type or '')[:40]!r}")
        parts += reader(place, block, names)
    return parts


def _split(role: str, parts: list[Part]) -> list[Message]:
    """A turn as messages: each result of a tool in one of its own, and after them one of the rest."""
    results = [Message("tool", (part,)) for part in parts if isinstance(part, ToolResult)]
    rest = tuple(part for part in parts if not isinstance(part, ToolResult))
    return [*results, Message(role, rest)] if rest or not results else results


def _read_text(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    del names
    if block.text is None:
        raise InvalidRequest(f"{where}.text is required")
    return [Text(block.text)]


def _read_image(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    del names
    source = _source(where, block)
    if source.type != "base64" or source.data is None:
        raise InvalidRequest(f"{where}.source must be of type base64 with data; nothing is downloaded")
    return [read_image(source.data, f"{where}.source.data")]


def _read_document(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    """A document of plain text stands in the message as text, below its title."""
    del names
    source = _source(where, block)
    text = source.content if source.type == "content" else source.data
    if source.type not in ("text", "content") or not isinstance(text, str):
        raise Unsupported(f"{where}.source: this version reads documents of type text only")
    return [Text(_quote(text, block.title))]


def _read_search_result(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    parts = read_blocks(f"{where}.content", block.content or "", names)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return [Text(_quote(text, block.title, block.source if isinstance(block.source, str) else None))]


def _quote(text: str, *heads: str | None) -> str:
    """A text below what says where it is from, with a blank line before what follows."""
    head = "\n".join(line for line in heads if line)
    return f"{head}\n\n{text}\n\n" if head else f"{text}\n\n"


def _read_thinking(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    del where, names
    return [Thinking(block.thinking)] if block.thinking else []


def _skip(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    """Redacted thinking can be read by Anthropic's servers only."""
    del where, block, names
    return []


def _read_call(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    if not block.id:
        raise InvalidRequest(f"{where}: a tool_use needs an id")
    if not block.name:
        raise InvalidRequest(f"{where}: a tool_use needs a name")
    names[block.id] = block.name
    return [ToolCall(block.id, block.name, block.input or {})]


def _read_result(where: str, block: Block, names: dict[str, str]) -> list[Part]:
    """A result, and after it its images, which templates take in messages of users only."""
    if not block.tool_use_id:
        raise InvalidRequest(f"{where}: a tool_result needs a tool_use_id")
    parts = read_blocks(f"{where}.content", block.content or "", names)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    # No template knows of failed calls; the model must read it.
    shown = f"Error: {text}" if block.is_error else text
    images = [part for part in parts if isinstance(part, Image)]
    return [ToolResult(block.tool_use_id, names.get(block.tool_use_id, ""), shown), *images]


def _source(where: str, block: Block) -> Source:
    if not isinstance(block.source, Source):
        raise InvalidRequest(f"{where}.source must be an object with type and data")
    return block.source


_READERS: dict[str, Callable[[str, Block, dict[str, str]], list[Part]]] = {
    "text": _read_text,
    "image": _read_image,
    "tool_use": _read_call,
    "tool_result": _read_result,
    "thinking": _read_thinking,
    "redacted_thinking": _skip,
    "document": _read_document,
    "search_result": _read_search_result,
}
