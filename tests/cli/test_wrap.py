"""Words that stream in pieces stay whole on a terminal."""

from __future__ import annotations

from corral.cli.wrap import WordWrapper
from hypothesis import given
from hypothesis import strategies as st


def wrap(pieces: list[str], width: int) -> str:
    wrapper = WordWrapper(lambda: width)
    return "".join(wrapper.feed(piece) for piece in pieces) + wrapper.flush()


def test_word_that_does_not_fit_goes_on_the_next_line() -> None:
    assert wrap(["the qui", "ck brown ", "fox"], 10) == "the quick\nbrown fox"


def test_word_is_shown_once_it_is_whole() -> None:
    wrapper = WordWrapper(lambda: 80)
    assert wrapper.feed("Hel") == ""
    assert wrapper.feed("lo wor") == "Hello"
    assert wrapper.flush() == " wor"


def test_word_longer_than_a_line_is_left_to_the_terminal() -> None:
    assert wrap(["a " + "x" * 30 + " b"], 10) == "a\n" + "x" * 30 + "\nb"


def test_own_line_ends_and_indents_stay() -> None:
    assert wrap(["def f():\n    return 1\n\n- item"], 40) == "def f():\n    return 1\n\n- item"


def test_wide_characters_count_twice() -> None:
    assert wrap(["日本 日本"], 8) == "日本\n日本"


@given(st.text("ab \n", max_size=60), st.integers(3, 12), st.lists(st.integers(1, 7), max_size=30))
def test_words_are_those_of_the_text(text: str, width: int, sizes: list[int]) -> None:
    pieces, rest = [], text
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    wrapped = wrap([*pieces, rest], width)
    assert wrapped.split() == text.split()
    assert all(len(line.rstrip()) <= width or " " not in line.strip() for line in wrapped.split("\n"))
