"""Answers that must match a schema or grammar: llguidance turns it into masks over the vocabulary, for every engine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidFormat
from ..core.types import OutputFormat
from .protocol import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# A small model that may write blanks at will may write nothing else; this is enough for any indentation.
_WHITESPACE = r"[\x20\x0A]{0,20}"
# llguidance reads numbers as doubles: beyond this whole numbers would silently become their neighbours.
_MAX_EXACT = (1 << 53) - 1
_ANY_OBJECT = '{"type": "object"}'


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

    def compile(self, output_format: OutputFormat) -> GrammarConstraint:
        """A constraint for one answer. Errors: InvalidFormat with llguidance's words, which name the place."""
        from llguidance import LLMatcher

        grammar = _grammar(output_format)
        is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar)
        if is_error:
            raise InvalidFormat(f"format: this schema cannot constrain an answer: {' '.join(messages[0].split())}")
        matcher = LLMatcher(self._take_in(), grammar, log_level=0)
        if matcher.is_error():
            raise InvalidFormat(f"format: this schema cannot constrain an answer: {matcher.get_error()}")
        return GrammarConstraint(matcher, self._num_vocab)

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


def _check_numbers(value: Any, pointer: str) -> None:
    """Errors: InvalidFormat with the JSON pointer of a whole number that would not stay exact."""
    if isinstance(value, int) and abs(value) > _MAX_EXACT:
        raise InvalidFormat(f"format: {pointer}: {value} is beyond 2^53-1 and cannot be kept exactly")
    children: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        _check_numbers(child, f"{pointer}/{key}")


def _grammar(output_format: OutputFormat) -> str:
    from llguidance import LLMatcher

    kind, source = output_format.kind, output_format.source
    try:
        if kind == "regex":
            return str(LLMatcher.grammar_from_regex(source))
        if kind == "lark":
            return str(LLMatcher.grammar_from_lark(source))
        schema = _ANY_OBJECT if kind == "json" else source
        _check_numbers(json.loads(schema), "#")
        # oneOf is read as anyOf where the branches cannot be told apart beforehand, as other servers do.
        overrides = {"whitespace_pattern": _WHITESPACE, "coerce_one_of": True}
        return str(LLMatcher.grammar_from_json_schema(schema, overrides=overrides))
    except ValueError as error:
        raise InvalidFormat(f"format: {error}") from None
