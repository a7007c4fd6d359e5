"""Bodies: any bytes are an object or an error, wrong types are named with their place, unknown fields with a hint."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corral.core.errors import InvalidRequest
from corral.daemon.dialects.bodies import Body, parse_json, read_body, unknown_fields
from hypothesis import given
from hypothesis import strategies as st


class Leaf(msgspec.Struct, frozen=True):
    text: str | None = None
    shown_as: int | None = msgspec.field(name="as", default=None)


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    left: Leaf | None = None


class Knot(msgspec.Struct, frozen=True, tag="knot"):
    size: int | None = None


class Tree(Body, frozen=True):
    name: str | None = None
    leaves: list[Leaf] | None = None
    parts: str | list[Fork | Knot] | None = None
    free: dict[str, Any] | None = None


@given(st.binary(max_size=40))
def test_any_bytes_are_an_object_or_an_error_of_ours(data: bytes) -> None:
    try:
        assert isinstance(parse_json(data), dict)
    except InvalidRequest as error:
        assert error.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" ", "missing request body"),
        (b"{", "at line 1, column 2"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "too deep"),
        (b'"text"', "must be a JSON object"),
    ],
)
def test_body_that_is_no_object_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_json(data)


def test_nan_passes_to_the_check_of_its_option() -> None:
    assert str(parse_json(b'{"a": NaN}')["a"]) == "nan"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": 5}, "name must be a string, not 5"),
        ({"leaves": {}}, "leaves must be a list, not {}"),
        ({"leaves": [{}, {"text": ["x"]}]}, "leaves[1].text must be a string, not ['x']"),
        ({"leaves": [{"as": "x"}]}, "leaves[0].as must be a whole number, not 'x'"),
        ({"parts": [{"type": "fork", "left": 1}]}, "parts[0].left must be an object, not 1"),
        ({"strict": "yes"}, "strict must be true or false, not 'yes'"),
    ],
)
def test_wrong_type_is_named_with_its_place(value: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_body(value, Tree)
    assert refused.value.message == message


def test_null_counts_as_absent() -> None:
    assert read_body({"name": None, "leaves": None}, Tree) == Tree()


def test_unknown_fields_are_found_at_any_depth() -> None:
    value = {
        "nam": 1,
        "leaves": [{}, {"texts": 1}],
        "parts": [{"type": "fork", "left": {"as": 1, "wild": 2}}, {"type": "knot", "left": {}}],
        "free": {"anything": 1},
    }
    assert unknown_fields(value, Tree) == (
        'unknown field "nam" was ignored; did you mean "name"?',
        'unknown field "leaves[1].texts" was ignored; did you mean "text"?',
        'unknown field "parts[0].left.wild" was ignored',
        'unknown field "parts[1].left" was ignored',
    )
