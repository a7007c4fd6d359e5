"""Characters and stop strings across token borders."""

from __future__ import annotations

import pytest
from corral.backends.text import Detokenizer, StopMatcher
from hypothesis import given
from hypothesis import strategies as st


def test_character_split_over_tokens_comes_out_whole() -> None:
    detokenizer = Detokenizer()
    family = "👨‍👩‍👧".encode()
    pieces = [detokenizer.feed(family[at : at + 1]) for at in range(len(family))]
    assert "".join(pieces) == "👨‍👩‍👧"
    assert all("\ufffd" not in piece for piece in pieces)


def test_half_a_character_at_the_end_is_not_shown() -> None:
    detokenizer = Detokenizer()
    assert detokenizer.feed(b"ok \xf0\x9f") == "ok "


def test_bytes_that_are_no_character_are_marked() -> None:
    assert Detokenizer().feed(b"a\xffb") == "a\ufffdb"


def test_stop_string_over_several_pieces_is_never_shown() -> None:
    matcher = StopMatcher([", 13"])
    shown = [matcher.feed(piece) for piece in ["11", ", ", "12", ",", " ", "1", "3", ", 14"]]
    assert "".join(shown[:7]) == "11, 12"
    assert matcher.hit == ", 13"


def test_beginning_of_a_stop_string_is_sent_when_it_is_none() -> None:
    matcher = StopMatcher(["<end>"])
    assert matcher.feed("a <e") == "a "
    assert matcher.feed("lse") == "<else"
    assert matcher.feed("<en") == ""
    assert matcher.flush() == "<en"
    assert matcher.hit is None


def test_earliest_of_several_stop_strings_wins() -> None:
    matcher = StopMatcher(["three", "two"])
    assert matcher.feed("one two three") == "one "
    assert matcher.hit == "two"


@given(
    st.text("ab", max_size=30),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(1, 5), max_size=30),
)
def test_pieces_give_the_same_as_the_whole(text: str, stops: list[str], sizes: list[int]) -> None:
    cuts = [text.find(stop) for stop in stops if stop in text]
    expected = text[: min(cuts)] if cuts else text
    matcher = StopMatcher(stops)
    shown, rest = "", text
    for size in [*sizes, len(text) or 1]:
        shown += matcher.feed(rest[:size])
        rest = rest[size:]
        if matcher.hit is not None:
            break
    if matcher.hit is None:
        shown += matcher.flush()
    # A stop string that ends earlier is found earlier, though a longer one may begin before it.
    assert text.startswith(shown)
    if not stops or len({len(stop) for stop in stops}) == 1:
        assert shown == expected


@pytest.mark.parametrize("stops", [[], [""]])
def test_nothing_is_held_without_stop_strings(stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    assert matcher.feed("text") == "text"
    assert not matcher.holds
