"""The vocabulary of a loaded model, behind the Tokenizer protocol."""

from __future__ import annotations

from .binding import Model


class LlamaTokenizer:
    """The model's vocabulary, behind the Tokenizer protocol."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.num_vocab = model.num_vocab
        self.bos_text = model.begin_text()
        self.eos_text = model.end_text()
        self.specials = model.special_texts()
        begin = model.begin_token()
        self._prefix = [] if begin is None else [begin]
        self._pieces: dict[int, bytes] = {}

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

    def vocabulary(self) -> tuple[list[bytes], list[int]]:
        """The bytes of every token, and those that end a generation."""
        tokens = range(self._model.num_vocab)
        return [self._model.piece(token) for token in tokens], [token for token in tokens if self._model.is_end(token)]
