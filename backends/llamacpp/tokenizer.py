"""The vocabulary of a loaded model, behind the Tokenizer protocol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from .binding.model import Model


class LlamaTokenizer:
    """The model's vocabulary, behind the Tokenizer protocol."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.num_vocab = model.num_vocab
        self.bos_text = model.begin_text()
        self.eos_text = model.end_text()
        texts = model.special_texts()
        self.specials = frozenset(texts.values())
        begin = model.begin_token()
        self._prefix = [] if begin is None else [begin]
        self._before, self._after = _find_frame(model)
        self._pieces: dict[int, bytes] = {}
        self._special_texts = {token: text for token, text in texts.items() if model.is_control(token)}
        self.special_tokens = {text: token for token, text in self._special_texts.items()}

    @cached_property
    def end_tokens(self) -> list[int]:
        """The tokens that end a generation. Looking through the vocabulary takes a while, and few requests ask."""
        return [token for token in range(self.num_vocab) if self._model.is_end(token)]

    def encode(self, text: str, *, parse_special: bool) -> list[int]:
        """Tokens of a text."""
        return self._model.tokenize(text, parse_special)

    def prefix(self) -> list[int]:
        """The beginning-of-sequence token, where the model wants one."""
        return list(self._prefix)

    def piece(self, token: int) -> bytes:
        """The bytes of a token."""
        if token not in self._pieces:
            self._pieces[token] = self._model.piece(token)
        return self._pieces[token]

    def special_text(self, token: int) -> str:
        """The text of a control token."""
        return self._special_texts.get(token, "")

    def whole(self, tokens: Sequence[int]) -> list[int]:
        """A text to embed between the tokens that the model wants around it."""
        return [*self._before, *tokens, *self._after] or [self._model.filler_token()]

    def pair(self, query: Sequence[int], document: Sequence[int]) -> list[int]:
        """A query and a document as llama.cpp's server puts them together for a rank head."""
        return [*self._before, *query, *self._model.separators(), *document, *self._after]

    def vocabulary(self) -> tuple[list[bytes], list[int]]:
        """The bytes of every token, and those that end a generation."""
        return [self._model.piece(token) for token in range(self._model.num_vocab)], list(self.end_tokens)


def _find_frame(model: Model) -> tuple[list[int], list[int]]:
    """What llama.cpp puts before and after a text, found on one: its flags mean different things by vocabulary."""
    inner = model.tokenize("a", parse_special=False)
    whole = model.tokenize("a", parse_special=False, add_special=True)
    for start in range(len(whole) - len(inner) + 1):
        if whole[start : start + len(inner)] == inner:
            return whole[:start], whole[start + len(inner) :]
    return [], []
