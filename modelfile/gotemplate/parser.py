"""From tokens to the tree, refusing what Go's parser refuses: unknown functions and variables, unmatched ends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NoReturn, TypeVar

from . import literals
from .lexer import Kind, Token, tokens
from .nodes import (
    Action,
    Arm,
    Block,
    Branch,
    Break,
    Call,
    Chain,
    Command,
    Continue,
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

# Deeper than any template that somebody wrote; Go's own limits are for a language with a larger stack.
_MAX_NESTING = 100

_T = TypeVar("_T")


def parse(source: str, functions: Collection[str]) -> dict[str, Block]:
    """All templates of a source by name; that of the source itself is "". Errors: InvalidTemplate with the place."""
    return _Parser(source, functions).parse()


class _Parser:
    def __init__(self, source: str, functions: Collection[str]) -> None:
        self._source = source
        self._functions = functions
        self._stream = tokens(source)
        self._pushed: list[Token] = []
        self._templates: dict[str, Block] = {}
        self._variables = ["$"]
        self._num_ranges = 0
        self._depth = 0

    def parse(self) -> dict[str, Block]:
        nodes: list[Node] = []
        while self._peek().kind is not Kind.END:
            left = self._next()
            word = self._next_solid() if left.kind is Kind.LEFT else left
            if left.kind is Kind.LEFT and word == Token(Kind.KEYWORD, word.position, "define"):
                self._parse_definition()
                continue
            self._push(word)
            if word is not left:
                self._push(left)
            node = self._parse_node()
            if isinstance(node, Token):
                self._fail(node, f"unexpected {{{{{node.text}}}}}")
            nodes.append(node)
        self._add("", tuple(nodes), 0)
        return self._templates

    # Tokens

    def _next(self) -> Token:
        return self._pushed.pop() if self._pushed else next(self._stream)

    def _push(self, token: Token) -> None:
        self._pushed.append(token)

    def _peek(self) -> Token:
        token = self._next()
        self._push(token)
        return token

    def _next_solid(self) -> Token:
        """The next token that is no blank."""
        token = self._next()
        while token.kind is Kind.SPACE:
            token = self._next()
        return token

    def _peek_solid(self) -> Token:
        token = self._next_solid()
        self._push(token)
        return token

    def _expect(self, kind: Kind, context: str) -> Token:
        token = self._next_solid()
        if token.kind is not kind:
            self._fail(token, f"unexpected {_shown(token)} in {context}")
        return token

    def _fail(self, token: Token, message: str) -> NoReturn:
        raise invalid(self._source, token.position, message)

    # Text and actions

    def _parse_block(self) -> tuple[Block, Token]:
        """Nodes up to an `end` or `else`, and that token."""
        nodes: list[Node] = []
        while True:
            if self._peek_solid().kind is Kind.END:
                self._fail(self._next_solid(), "unexpected end of the template: an {{end}} is missing")
            node = self._parse_node()
            if isinstance(node, Token):
                return tuple(nodes), node
            nodes.append(node)

    def _parse_node(self) -> Node | Token:
        """A node, or the keyword of an `end` or `else`."""
        token = self._next_solid()
        if token.kind is Kind.TEXT:
            return Text(token.position, token.text)
        if token.kind is not Kind.LEFT:
            self._fail(token, f"unexpected {_shown(token)}")
        word = self._next_solid()
        if word.kind is Kind.KEYWORD and word.text == "end":
            self._expect(Kind.RIGHT, "end")
            return word
        if word.kind is Kind.KEYWORD and word.text == "else":
            following = self._peek_solid()
            if not _is_word(following, "if", "with"):
                self._expect(Kind.RIGHT, "else")
            return word
        control = self._controls().get(word.text) if word.kind is Kind.KEYWORD else None
        if control is not None:
            return control(word)
        self._push(word)
        return Action(word.position, self._parse_pipe("command", Kind.RIGHT))

    def _controls(self) -> dict[str, Callable[[Token], Node]]:
        return {
            "if": self._parse_branch,
            "with": self._parse_branch,
            "range": self._parse_range,
            "template": self._parse_invoke,
            "block": self._parse_inner_block,
            "break": self._parse_jump,
            "continue": self._parse_jump,
        }

    def _parse_jump(self, word: Token) -> Node:
        self._expect(Kind.RIGHT, f"{{{{{word.text}}}}}")
        if not self._num_ranges:
            self._fail(word, f"{{{{{word.text}}}}} outside {{{{range}}}}")
        return Break(word.position) if word.text == "break" else Continue(word.position)

    def _parse_branch(self, word: Token) -> Node:
        """`if` and `with`, with the chain of `else if` and `else with`, whose variables live up to the common end."""
        num_variables = len(self._variables)
        self._enter(word)
        arms: list[Arm] = []
        otherwise: Block = ()
        while True:
            pipe = self._parse_pipe(word.text, Kind.RIGHT)
            body, stop = self._parse_block()
            arms.append(Arm(pipe, body))
            if stop.text == "end":
                break
            if _is_word(self._peek_solid(), word.text):
                self._next_solid()
                continue
            otherwise = self._parse_last_block()
            break
        self._depth -= 1
        del self._variables[num_variables:]
        return Branch(word.position, word.text == "with", tuple(arms), otherwise)

    def _parse_last_block(self) -> Block:
        body, stop = self._parse_block()
        if stop.text != "end":
            self._fail(stop, "expected end; found {{else}}")
        return body

    def _parse_range(self, word: Token) -> Node:
        num_variables = len(self._variables)
        self._enter(word)
        pipe = self._parse_pipe("range", Kind.RIGHT)
        self._num_ranges += 1
        body, stop = self._parse_block()
        self._num_ranges -= 1
        otherwise = self._parse_last_block() if stop.text == "else" else ()
        self._depth -= 1
        del self._variables[num_variables:]
        return Range(word.position, pipe, body, otherwise)

    def _enter(self, token: Token) -> None:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            self._fail(token, f"nested more than {_MAX_NESTING} deep")

    # Templates by name

    def _parse_name(self, context: str) -> str:
        token = self._expect(Kind.STRING, context)
        return self._read(token, literals.read_string)

    def _parse_definition(self) -> None:
        position = self._peek().position
        name = self._parse_name("define clause")
        self._expect(Kind.RIGHT, "define clause")
        self._parse_separate(name, "define clause", position)

    def _parse_separate(self, name: str, context: str, position: int) -> None:
        """The body of a template by name: it sees no variables and no loop around it."""
        outside = self._variables, self._num_ranges
        self._variables, self._num_ranges = ["$"], 0
        body, stop = self._parse_block()
        if stop.text != "end":
            self._fail(stop, f"unexpected {{{{else}}}} in {context}")
        self._variables, self._num_ranges = outside
        self._add(name, body, position)

    def _add(self, name: str, body: Block, position: int) -> None:
        if _is_empty(self._templates.get(name, ())):
            self._templates[name] = body
        elif not _is_empty(body):
            raise invalid(self._source, position, f"multiple definition of template {name[:60]!r}")

    def _parse_invoke(self, word: Token) -> Node:
        name = self._parse_name("template clause")
        if self._peek_solid().kind is Kind.RIGHT:
            self._next_solid()
            return Invoke(word.position, name, None)
        return Invoke(word.position, name, self._parse_pipe("template clause", Kind.RIGHT))

    def _parse_inner_block(self, word: Token) -> Node:
        name = self._parse_name("block clause")
        pipe = self._parse_pipe("block clause", Kind.RIGHT)
        self._enter(word)
        self._parse_separate(name, "block clause", word.position)
        self._depth -= 1
        return Invoke(word.position, name, pipe)

    # Pipelines

    def _parse_pipe(self, context: str, end: Kind) -> Pipe:
        start = self._peek_solid()
        declared, assigns = self._parse_declarations(context)
        commands: list[Command] = []
        while (token := self._next_solid()).kind is not end:
            if not _starts_operand(token):
                self._fail(token, f"unexpected {_shown(token)} in {context}")
            self._push(token)
            commands.append(self._parse_command())
        if not commands:
            self._fail(token, f"missing value for {context}")
        for number, command in enumerate(commands[1:], 2):
            if isinstance(command.operands[0], Literal | Dot | Nil):
                message = f"non executable command in pipeline stage {number}"
                raise invalid(self._source, command.position, message)
        return Pipe(start.position, tuple(declared), assigns, tuple(commands))

    def _parse_declarations(self, context: str) -> tuple[list[str], bool]:
        declared: list[str] = []
        while (variable := self._peek_solid()).kind is Kind.VARIABLE:
            self._next()
            adjacent = self._next()
            following = self._next_solid() if adjacent.kind is Kind.SPACE else adjacent
            if following.kind in (Kind.ASSIGN, Kind.DECLARE):
                self._declare(declared, variable)
                return declared, following.kind is Kind.ASSIGN
            if following != Token(Kind.OTHER, following.position, ","):
                self._push(following)
                if adjacent is not following:
                    self._push(adjacent)
                self._push(variable)
                break
            self._declare(declared, variable)
            if context != "range" or len(declared) > 1:
                self._fail(variable, f"too many declarations in {context}")
            if self._peek_solid().kind not in (Kind.VARIABLE, Kind.RIGHT, Kind.CLOSE):
                self._fail(variable, "range can only initialize variables")
        return declared, False

    def _declare(self, declared: list[str], variable: Token) -> None:
        declared.append(variable.text)
        self._variables.append(variable.text)

    def _parse_command(self) -> Command:
        position = self._peek_solid().position
        operands: list[Operand] = []
        while True:
            self._peek_solid()
            operand = self._parse_operand()
            if operand is not None:
                operands.append(operand)
            token = self._next()
            if token.kind is Kind.SPACE:
                continue
            if token.kind in (Kind.RIGHT, Kind.CLOSE):
                self._push(token)
            elif token.kind is not Kind.PIPE:
                self._fail(token, f"unexpected {_shown(token)} in operand")
            break
        if not operands:
            self._fail(token, "empty command")
        return Command(position, tuple(operands))

    def _parse_operand(self) -> Operand | None:
        operand = self._parse_term()
        if operand is None or self._peek().kind is not Kind.FIELD:
            return operand
        first = self._peek()
        names: list[str] = []
        while self._peek().kind is Kind.FIELD:
            names.append(self._next().text[1:])
        if isinstance(operand, Field):
            return Field(operand.position, (*operand.names, *names))
        if isinstance(operand, Variable):
            return Variable(operand.position, operand.name, (*operand.names, *names))
        if isinstance(operand, Literal | Nil | Dot):
            self._fail(first, "unexpected . after a constant or dot")
        return Chain(operand.position, operand, tuple(names))

    def _parse_term(self) -> Operand | None:
        token = self._next_solid()
        if token.kind is Kind.IDENTIFIER:
            if token.text not in self._functions:
                self._fail(token, f"function {token.text[:60]!r} not defined")
            return Call(token.position, token.text)
        if token.kind is Kind.VARIABLE:
            if token.text not in self._variables:
                self._fail(token, f"undefined variable {token.text[:60]!r}")
            return Variable(token.position, token.text, ())
        if token.kind is Kind.FIELD:
            return Field(token.position, (token.text[1:],))
        if token.kind is Kind.OPEN:
            self._enter(token)
            pipe = self._parse_pipe("parenthesized pipeline", Kind.CLOSE)
            self._depth -= 1
            return pipe
        return self._parse_constant(token)

    def _parse_constant(self, token: Token) -> Operand | None:
        if token.kind is Kind.DOT:
            return Dot(token.position)
        if _is_word(token, "nil"):
            return Nil(token.position)
        if token.kind is Kind.BOOL:
            return Literal(token.position, token.text == "true", token.text)
        if token.kind is Kind.STRING:
            return Literal(token.position, self._read(token, literals.read_string), token.text)
        if token.kind is Kind.CHAR:
            return Literal(token.position, self._read(token, literals.read_character), token.text)
        if token.kind is Kind.NUMBER:
            return Literal(token.position, self._read(token, literals.read_number), token.text)
        self._push(token)
        return None

    def _read(self, token: Token, read: Callable[[str], _T]) -> _T:
        try:
            return read(token.text)
        except ValueError as error:
            self._fail(token, str(error))


_OPERAND_KINDS = frozenset(
    (Kind.BOOL, Kind.CHAR, Kind.DOT, Kind.FIELD, Kind.IDENTIFIER, Kind.NUMBER, Kind.STRING, Kind.VARIABLE, Kind.OPEN)
)


def _starts_operand(token: Token) -> bool:
    return token.kind in _OPERAND_KINDS or _is_word(token, "nil")


def _is_word(token: Token, *words: str) -> bool:
    return token.kind is Kind.KEYWORD and token.text in words


def _is_empty(body: Block) -> bool:
    return all(isinstance(node, Text) and not node.text.strip() for node in body)


def _shown(token: Token) -> str:
    text = token.text if len(token.text) <= 20 else token.text[:20] + "…"
    return text if token.kind is Kind.END else f"{text!r}"
