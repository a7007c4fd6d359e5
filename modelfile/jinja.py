"""Chat templates in Jinja, as models carry them: rendered the way transformers does, in a sandbox, with bounded work.

Nothing of a template is evaluated while it is compiled: `create` can check one that was not written in good faith."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.meta import TrackingCodeGenerator
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ..core.errors import InvalidTemplate
from ..core.types import Message, Thinking, ToolCall, ToolResult

_MAX_SOURCE_CHARS = 1 << 20
_MAX_OUTPUT_CHARS = 64 << 20
_MAX_ITEMS = 1 << 20  # of a list that a template makes
_MAX_NUMBER_BITS = 1024
# Work of one rendering: passes of loops, and calls, which take longer. A conversation of thousands of messages takes
# some hundred thousand; the limit is reached within seconds.
_MAX_STEPS = 1 << 22
_STEPS_OF_CALL = 8
_MAX_SHOWN_CHARS = 500  # of what a template says in an error
# What faulty templates and values raise beside jinja's own errors. RecursionError is a RuntimeError.
_FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


class ChatTemplate:
    """A compiled template. It holds nothing of a rendering, so any thread may use it."""

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        """Compile. Errors: InvalidTemplate with the line."""
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        environment = _Environment()
        try:
            tree = _Bounder().visit(_parse(environment, source))
            code = environment.compile(tree)
            self._template = jinja2.Template.from_code(environment, code, environment.make_globals(None))
        except _FAULTS as error:
            raise _invalid(error) from None

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        now: datetime | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt. `now` is what strftime_now formats; `extra` adds variables such as enable_thinking.

        Errors: InvalidTemplate with the template's own message, and the line, where it refuses the messages or fails.
        """
        moment = now or datetime.now()
        variables = {
            **self._tokens,
            "messages": [entry for message in messages for entry in _message_dicts(message)],
            "tools": list(tools) if tools else None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
            "strftime_now": moment.strftime,
            **(extra or {}),
        }
        try:
            return _join_output(self._template.root_render_func(self._template.new_context(variables)))
        except _FAULTS as error:
            raise _invalid(error) from None


def mentions(source: str, name: str) -> bool:
    """Whether a template looks up the variable `name`, such as `tools`. Errors: InvalidTemplate when it is broken."""
    environment = _Environment()
    try:
        tracker = TrackingCodeGenerator(environment)
        tracker.optimizer = None  # as in compiling: evaluate nothing
        tracker.visit(_parse(environment, source))
    except _FAULTS as error:
        raise _invalid(error) from None
    return name in tracker.undeclared_identifiers


class _Context(Context):
    """What a rendering can see, with the account of its work."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._steps = [0]

    def derived(self, locals: dict[str, Any] | None = None) -> Context:
        """As in jinja, with the account shared."""
        context = super().derived(locals)
        if isinstance(context, _Context):
            context._steps = self._steps
        return context

    def step(self, count: int) -> None:
        """Errors: TemplateRuntimeError when a rendering does more than any prompt needs."""
        self._steps[0] += count
        if self._steps[0] > _MAX_STEPS:
            raise jinja2.TemplateRuntimeError("it loops or calls more often than any prompt needs")


class _Environment(ImmutableSandboxedEnvironment):
    """The environment of transformers, with calls and growing values held in bounds."""

    context_class = _Context
    intercepted_binops = frozenset({"+", "*", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_GenerationTag, "jinja2.ext.loopcontrols"],
            optimized=False,
            finalize=_as_it_is,
        )
        self.filters["tojson"] = _to_json
        self.filters[_COUNTED] = _counted
        self.filters[_JOINED] = _joined
        self.globals["raise_exception"] = _raise_exception

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call from a template; the names keep out of the way of keyword arguments."""
        _step(__context, _STEPS_OF_CALL)
        if isinstance(__obj, LoopContext) and args:
            args = (_counted(__context, args[0]), *args[1:])
        return super().call(__context, __obj, *args, **kwargs)

    def unsafe_undefined(self, obj: Any, attribute: str) -> jinja2.Undefined:
        """Refuse at once what jinja would print as nothing."""
        raise SecurityError(f"access to attribute '{attribute}' of a {type(obj).__name__} is not allowed")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Operators whose result can be out of all proportion to the template."""
        _check_growth(operator, left, right)
        return super().call_binop(context, operator, left, right)


class _GenerationTag(Extension):
    """`{% generation %}` marks what training learns from; in a prompt its body stands as it is."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        """The body in a scope of its own, as transformers has it."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Bounder(NodeTransformer):
    """Puts what every loop runs over, and every `~`, through filters that count."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filtered(node.iter, _COUNTED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), _JOINED)


# Names that no template can write.
_COUNTED, _JOINED = "counted loop", "joined text"


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


@jinja2.pass_context
def _counted(context: Context, items: Iterable[Any]) -> Iterable[Any]:
    values = tuple(items)
    _step(context, len(values))
    return values


def _joined(values: list[Any]) -> str:
    texts = [str(value) for value in values]
    _check_size(sum(map(len, texts)), _MAX_OUTPUT_CHARS)
    return "".join(texts)


@jinja2.pass_context
def _as_it_is(_context: Context, value: Any) -> Any:
    """A finalizer that needs a context: jinja then leaves constant expressions to the rendering."""
    return value


def _step(context: Context, count: int) -> None:
    if isinstance(context, _Context):
        context.step(count)


def _check_growth(operator: str, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        bits = {"**": left.bit_length() * abs(right), "*": left.bit_length() + right.bit_length()}
        if bits.get(operator, 0) > _MAX_NUMBER_BITS:
            raise jinja2.TemplateRuntimeError(f"a number of more than {_MAX_NUMBER_BITS} bits")
    elif operator == "*" and isinstance(left, int):
        _check_growth(operator, right, left)
    elif isinstance(left, str | list | tuple):
        limit = _MAX_OUTPUT_CHARS if isinstance(left, str) else _MAX_ITEMS
        if operator == "*" and isinstance(right, int):
            _check_size(len(left) * right, limit)
        elif operator == "+" and isinstance(right, str | list | tuple):
            _check_size(len(left) + len(right), limit)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise jinja2.TemplateRuntimeError(f"a text or list longer than {limit}")


def _join_output(chunks: Iterator[str]) -> str:
    texts: list[str] = []
    size = 0
    for text in chunks:
        size += len(text)
        _check_size(size, _MAX_OUTPUT_CHARS)
        texts.append(text)
    return "".join(texts)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: Sequence[str] | None = None,
    sort_keys: bool = False,
) -> str:
    """transformers' filter: jinja's own would write HTML escapes into prompts."""
    pair = (separators[0], separators[1]) if separators else None
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=pair, sort_keys=sort_keys)


def _raise_exception(message: Any = "it refuses these messages") -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _parse(environment: jinja2.Environment, source: str) -> nodes.Template:
    if len(source) > _MAX_SOURCE_CHARS:
        raise ValueError(f"{len(source)} characters are too many (at most {_MAX_SOURCE_CHARS})")
    tree = environment.parse(source)
    modifier = tree.find(nodes.EvalContextModifier)
    if modifier is not None:
        # Its arguments would be evaluated at once, and prompts are not HTML.
        raise jinja2.TemplateSyntaxError("autoescape has no place in a chat template", modifier.lineno)
    return tree


def _message_dicts(message: Message) -> Iterator[dict[str, Any]]:
    """A message as templates know it. One that holds several tool results becomes one for each."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if message.role == "tool" and results:
        for result in results:
            entry = {"role": message.role, "content": result.text, "name": result.name, "tool_call_id": result.id}
            yield {key: value for key, value in entry.items() if value or key == "content"}
        return
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    thinking = "".join(part.text for part in message.parts if isinstance(part, Thinking))
    if thinking:
        plain["reasoning_content"] = thinking
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if calls:
        plain["tool_calls"] = [_call_dict(call) for call in calls]
    yield plain


def _call_dict(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _invalid(error: BaseException) -> InvalidTemplate:
    line = error.lineno if isinstance(error, jinja2.TemplateSyntaxError) else _template_line(error.__traceback__)
    place = f", line {line}" if line else ""
    if isinstance(error, RecursionError):
        return InvalidTemplate(f"chat template{place}: it is nested, or calls itself, too deeply")
    message = (isinstance(error, jinja2.TemplateSyntaxError) and error.message) or str(error)
    return InvalidTemplate(f"chat template{place}: {message[:_MAX_SHOWN_CHARS] or type(error).__name__}")


def _template_line(traceback: TracebackType | None) -> int | None:
    """The innermost line of the template that an error came from; frames know lines of jinja's generated code only."""
    line: int | None = None
    while traceback is not None:
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, jinja2.Template):
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line
