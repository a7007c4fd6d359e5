"""Answers of the endpoints that tokenize: a rendered prompt in the form of each server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.events import Event, Rendered
from .whole_encoder import WholeEncoder


class RenderedEncoder(WholeEncoder):
    """Prints what a prompt became; the call's `details` is the function that does."""

    def _answer(self, events: Sequence[Event]) -> Any:
        rendered = next((event for event in events if isinstance(event, Rendered)), Rendered("", 0))
        return self._call.details(rendered)


def print_tokens(rendered: Rendered) -> dict[str, Any]:
    """llama.cpp's and our own: numbers."""
    return {"tokens": list(rendered.tokens)}


def print_pieces(rendered: Rendered) -> dict[str, Any]:
    """llama.cpp's with pieces: the text of each token, or its bytes where they are no text by themselves."""
    pairs = zip(rendered.tokens, rendered.pieces, strict=True)
    return {"tokens": [{"id": token, "piece": _text_or_bytes(piece)} for token, piece in pairs]}


def print_offsets(rendered: Rendered) -> list[dict[str, Any]]:
    """TGI's: where in the text each token stands, in characters; a token that was put in front stands nowhere."""
    widths = [_count_characters(piece) for piece in rendered.pieces]
    # Some tokenizers put a blank before the text, which is not in it.
    stop = min(0, len(rendered.text) - sum(widths))
    rows = []
    for token, piece, width in zip(rendered.tokens, rendered.pieces, widths, strict=True):
        start, stop = stop, stop + width
        shown = piece.decode("utf-8", "replace")
        rows.append({"id": token, "text": shown, "start": max(0, start), "stop": max(0, stop)})
    return rows


def print_count(rendered: Rendered) -> dict[str, Any]:
    """vLLM's: numbers and how many they are."""
    return {"count": rendered.num_tokens, "tokens": list(rendered.tokens), "token_strs": None}


def print_texts(rendered: Rendered) -> dict[str, Any]:
    """vLLM's with the text of each token."""
    return print_count(rendered) | {"token_strs": [piece.decode("utf-8", "replace") for piece in rendered.pieces]}


def print_content(rendered: Rendered) -> dict[str, Any]:
    """The text of tokens, under llama.cpp's and vLLM's names."""
    return {"content": rendered.text, "prompt": rendered.text}


def print_prompt(rendered: Rendered) -> dict[str, Any]:
    """llama.cpp's answer of /apply-template."""
    return {"prompt": rendered.text}


def _text_or_bytes(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


def _count_characters(piece: bytes) -> int:
    """Characters that begin in a piece: bytes of UTF-8 other than those that go on with one."""
    return sum(byte & 0xC0 != 0x80 for byte in piece)
