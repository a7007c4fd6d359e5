"""Answers that must match a schema or grammar: llguidance turns it into masks over the vocabulary, for every engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidFormat
from ..core.types import OutputFormat
from ..modelfile.output.syntax import ThinkingTags
from .exact import exact_grammar
from .protocol import Tokenizer
from .schema import Schema, contains_large, locate, read_schema, with_definitions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ANY_OBJECT = '{"type": "object"}'
_MAX_SOURCE_CHARS = 2 << 20


class GrammarConstraint:
    """Masks of one answer. Behind backends.protocol.Constraint."""

    def __init__(self, matcher: Any, num_vocab: int) -> None:
        import numpy as np

        self._matcher = matcher
        self._num_vocab = num_vocab
        self._bits = np.zeros((num_vocab + 31) // 32, np.int32)

    def restrict(self, logits: npt.NDArray[np.float32]) -> None:
        """Forbid what would break the grammar."""
        import numpy as np

        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        allowed = np.unpackbits(self._bits.view(np.uint8), bitorder="little")[: self._num_vocab]
        logits[allowed == 0] = -np.inf

    def accept(self, token: int) -> None:
        """Move on by a token. Errors: RuntimeError when the engine chose one that was forbidden."""
        if not self._matcher.consume_token(token):
            raise RuntimeError(f"token {token} breaks the grammar: {self._matcher.get_error()}")


class GrammarCompiler:
    """Makes constraints for one vocabulary, which llguidance takes in once, when first needed."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._vocabulary: Any = None
        self._num_vocab = 0

    def compile(self, output_format: OutputFormat, thinking: ThinkingTags | None = None) -> GrammarConstraint:
        """A constraint for one answer; with `thinking` the answer begins inside such tags, and the format follows them.

        Errors: InvalidFormat with the JSON pointer of what cannot be kept, or llguidance's words.
        """
        if len(output_format.source) > _MAX_SOURCE_CHARS:
            raise InvalidFormat(f"format: it has more than {_MAX_SOURCE_CHARS} characters")
        return self._make(_grammar(output_format), thinking, "format")

    def compile_calls(self, lark: str, thinking: ThinkingTags | None = None) -> GrammarConstraint:
        """A constraint for an answer that consists of tool calls. Errors: InvalidFormat for a tool's parameters."""
        from llguidance import LLMatcher

        return self._make(str(LLMatcher.grammar_from_lark(lark)), thinking, "tools")

    def _make(self, grammar: str, thinking: ThinkingTags | None, field: str) -> GrammarConstraint:
        from llguidance import LLMatcher

        if thinking is not None:
            grammar = self._after_thinking(grammar, thinking)
        matcher = LLMatcher(self._take_in(), grammar, log_level=0)
        if matcher.is_error():
            raise InvalidFormat(f"{field}: this cannot constrain an answer: {' '.join(matcher.get_error().split())}")
        return GrammarConstraint(matcher, self._num_vocab)

    def _after_thinking(self, grammar: str, thinking: ThinkingTags) -> str:
        """The grammar behind any text that ends in the closing tag."""
        token = self._tokenizer.special_tokens.get(thinking.close)
        if token is None:
            head = f"start: thought blanks @answer\nthought[suffix={json.dumps(thinking.close)}]: /(?s:.*)/\n"
        else:
            head = f"start: thought <[{token}]> blanks @answer\nthought: /(?s:.*)/\n"
        outer = {"lark_grammar": head + "blanks: /[ \\n]*/\n"}
        # llguidance hands Lark on as it is, and everything else as JSON.
        inner = json.loads(grammar)["grammars"] if grammar.startswith("{") else [{"lark_grammar": grammar}]
        return json.dumps({"grammars": [outer, {**inner[0], "name": "answer"}, *inner[1:]]})

    def _take_in(self) -> Any:
        if self._vocabulary is None:
            from llguidance import LLTokenizer, TokenizerWrapper

            pieces, ends = self._tokenizer.vocabulary()
            self._num_vocab = len(pieces)
            self._vocabulary = LLTokenizer(TokenizerWrapper(_Vocabulary(self._tokenizer, pieces, ends)), eos_token=ends)
        return self._vocabulary


class _Vocabulary:
    """What llguidance wants to know of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, pieces: list[bytes], ends: list[int]) -> None:
        self.eos_token_id = ends[0]
        self.bos_token_id = None
        # Tokens without text are special; llguidance never lets them into an answer.
        self.tokens = [piece or f"<special_{token}>".encode() for token, piece in enumerate(pieces)]
        self.special_token_ids = [token for token, piece in enumerate(pieces) if not piece]
        self._tokenizer = tokenizer

    def __call__(self, text: bytes | str) -> list[int]:
        decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._tokenizer.encode(decoded, parse_special=False)


def _grammar(output_format: OutputFormat) -> str:
    from llguidance import LLMatcher, grammar_from

    kind, source = output_format.kind, output_format.source
    if kind in ("json", "json_schema"):
        return _schema_grammar(read_schema(_ANY_OBJECT if kind == "json" else source))
    try:
        grammar = str(LLMatcher.grammar_from_lark(source) if kind == "lark" else grammar_from(kind, source))
    except ValueError as error:
        raise InvalidFormat(f"format: {' '.join(str(error).split())}") from None
    words = _complaint(grammar)
    if words:
        raise InvalidFormat(f"format: this {kind} cannot constrain an answer: {words}")
    return grammar


def _schema_grammar(schema: Schema) -> str:
    from llguidance import LLMatcher

    if contains_large(schema):
        return str(LLMatcher.grammar_from_lark(exact_grammar(schema)))
    grammar = str(LLMatcher.grammar_from_json_schema(json.dumps(with_definitions(schema, schema))))
    if _complaint(grammar):
        pointer, words = locate(
            schema, lambda part: _complaint(str(LLMatcher.grammar_from_json_schema(json.dumps(part))))
        )
        raise InvalidFormat(f"format: {pointer}: {words}")
    return grammar


def _complaint(grammar: str) -> str | None:
    """What llguidance says against a grammar, in one line."""
    from llguidance import LLMatcher

    is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    return " ".join(messages[0].split()) if is_error else None
