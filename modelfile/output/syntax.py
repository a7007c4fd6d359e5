"""How answers of a model hold thinking and tool calls, found from its chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from . import bare_calls, go_template, harmony
from .answer import AnswerParser
from .bare_calls import describe_tools
from .call_format import CallFormat
from .grammar import write_grammar
from .pieces import Piece
from .schema import tool_name
from .table import find_format
from .tagged_calls import json_layout, tagged_format
from .thinking import ThinkingTags, find_tags

__all__ = ["GENERIC", "OutputParser", "OutputSyntax", "ThinkingTags", "describe_tools", "find_syntax"]


class OutputParser(Protocol):
    """Reads one answer as it arrives."""

    def feed(self, text: str) -> list[Piece]:
        """What more text makes certain. It may end anywhere."""

    def finish(self) -> list[Piece]:
        """All that was held back. Called once, when no more text comes."""


@dataclass(frozen=True)
class OutputSyntax:
    """The form of a model's answers. `specials` are markers that count as text here though they may be control tokens
    of the vocabulary."""

    thinking: ThinkingTags | None = None
    calls: CallFormat | None = None

    @property
    def specials(self) -> frozenset[str]:
        """Texts of markers."""
        return frozenset((*(self.thinking or ()), *(self.calls.specials if self.calls else ())))

    @property
    def is_marked(self) -> bool:
        """Whether an answer has marks to take out also where no tools are offered."""
        return self.thinking is not None or bool(self.calls and self.calls.head)

    def starts_in_thinking(self, prompt: str) -> bool:
        """Whether a rendered prompt leaves a thinking tag open at its end, so that the answer begins inside."""
        return self.thinking is not None and prompt.rstrip().endswith(self.thinking.open)

    def parser(
        self, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False, forced: bool = False
    ) -> OutputParser:
        """A parser of one answer. Without `tools`, in OpenAI's form, nothing is a call.

        A call comes whole once it is known to be one of the tools and well formed; what is not comes as text. With
        `forced` the answer is held to `call_grammar`, and arguments come as they are written.
        """
        return AnswerParser(self.thinking, self.calls, tools, in_thinking=in_thinking, streams=forced)

    def call_grammar(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        names: Sequence[str] = (),
        parallel: bool = True,
        special_tokens: Mapping[str, int],
    ) -> str:
        """A grammar in llguidance's Lark that forces a call of a tool, or several if `parallel`; of `names` if given.

        Markers that `special_tokens` holds are written as those tokens. What the grammar refuses of a tool's schema
        shows when it is compiled.
        """
        chosen = [tool for tool in tools if not names or tool_name(tool) in names]
        layout = (self.calls or bare_calls.GENERIC).layout
        return write_grammar(layout, chosen, parallel, special_tokens)


# For models whose template knows no tools, and which `describe_tools` tells of them.
GENERIC = OutputSyntax(None, bare_calls.GENERIC)


def find_syntax(template: str, is_go: bool) -> OutputSyntax:
    """The form that a chat template tells of: Jinja, as in GGUF files, or Go. Errors: InvalidTemplate for broken Go."""
    if all(sign in template for sign in harmony.HARMONY.signs):
        return OutputSyntax(ThinkingTags(*harmony.THINKING), harmony.HARMONY)
    if not is_go:
        return OutputSyntax(find_tags(template), find_format(template) or bare_calls.GENERIC)
    return OutputSyntax(go_template.find_thinking(template), _find_go_format(template))


def _find_go_format(template: str) -> CallFormat:
    found = go_template.find_calls(template)
    if found is None:
        return bare_calls.bare_format(("name", "arguments"))
    row = find_format(found.text)
    if row is not None:
        return row
    if not found.tag:
        return bare_calls.bare_format(found.names)
    layout = json_layout(found.tag, found.close, found.names, found.is_list)
    return tagged_format("tag", (), layout, (found.tag,), (found.close,) if found.close else ())
