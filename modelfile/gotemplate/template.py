"""A Go template: compiled once, executed over any data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import InvalidTemplate
from . import analysis
from .evaluate import execute
from .functions import FUNCTIONS
from .nodes import Action, Chain, Command, Field, Pipe
from .parser import parse

_MAX_SOURCE_CHARS = 1 << 20


class GoTemplate:
    """A compiled template. It holds nothing of an execution, so any thread may use it."""

    def __init__(self, source: str) -> None:
        """Compile. Errors: InvalidTemplate with line and column."""
        if len(source) > _MAX_SOURCE_CHARS:
            raise InvalidTemplate(f"template: {len(source)} characters are too many (at most {_MAX_SOURCE_CHARS})")
        self._source = source
        try:
            self._templates = parse(source, FUNCTIONS)
        except RecursionError:
            raise InvalidTemplate("template: it is nested too deeply") from None

    def execute(self, data: Mapping[str, Any]) -> str:
        """The text. `data` holds JSON values; ints are Go's int, floats float64. Errors: InvalidTemplate with place."""
        return execute(self._source, self._templates, data)

    @property
    def vars(self) -> tuple[str, ...]:
        """Names of fields and variables that it mentions, in lower case and sorted. As in Ollama, what stands in
        parentheses that fields are taken of is not looked into."""
        return self._names(with_chains=False)

    def mentions(self, name: str) -> bool:
        """Whether a field `name`, in any case, is mentioned anywhere."""
        return name.lower() in self._names(with_chains=True)

    def unknown_names(self, known: Iterable[str]) -> tuple[str, ...]:
        """Fields of the data itself (`.Name` at the top, `$.Name`) that are not `known`, as they are written and in
        the order of the text. Each would print `<no value>`."""
        names = analysis.TopNames(self._templates).names
        allowed = frozenset(known)
        return tuple(name for name in names if name not in allowed)

    def with_field(self, name: str) -> GoTemplate:
        """The same template with `{{ .name }}` at its end."""
        end = len(self._source)
        pipe = Pipe(end, (), False, (Command(end, (Field(end, (name,)),)),))
        return self._with_root((*self._templates[""], Action(end, pipe)))

    def cut_after(self, name: str) -> GoTemplate:
        """The same template without what follows the first `{{ .name }}`."""
        return self._with_root(analysis.cut_after(self._templates[""], name)[0])

    def _with_root(self, root: Any) -> GoTemplate:
        made = GoTemplate.__new__(GoTemplate)
        made._source = self._source
        made._templates = {**self._templates, "": root}
        return made

    def _names(self, *, with_chains: bool) -> tuple[str, ...]:
        operands = (
            operand
            for block in self._templates.values()
            for operand in analysis.block_operands(block, with_chains=with_chains)
        )
        if with_chains:
            return tuple(sorted({name.lower() for operand in operands for name in analysis.operand_names(operand)}))
        plain = (operand for operand in operands if not isinstance(operand, Chain))
        return tuple(sorted({name.lower() for operand in plain for name in analysis.operand_names(operand)}))
