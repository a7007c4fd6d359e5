"""The option table against the types it fills, and both ways of reading a value: JSON and text."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from corral.core.errors import InvalidRequest
from corral.core.options import OPTIONS, RETIRED, Kind, check_options, nearest, parse_option
from corral.core.types import LoadOptions, Sampling

INTS = [name for name, row in OPTIONS.items() if row.kind is Kind.INT]
FLOATS = [name for name, row in OPTIONS.items() if row.kind is Kind.FLOAT]
FLOAT32_MAX = 3.4028234663852886e38


def test_table_when_compared_with_the_types() -> None:
    sampling = {name for name, row in OPTIONS.items() if not row.load}
    load = {name for name, row in OPTIONS.items() if row.load}
    # Biases are a field of their own in every dialect.
    assert set(Sampling.__struct_fields__) - sampling == {"logit_bias"}
    assert sampling <= set(Sampling.__struct_fields__)
    # The rest of LoadOptions are settings of the daemon, which no request may name.
    assert set(LoadOptions.__struct_fields__) - load == {"num_parallel", "kv_cache_type", "flash_attention"}
    assert not RETIRED & set(OPTIONS)


def test_values_when_of_the_right_types() -> None:
    values = {"num_predict": 4.0, "seed": -1, "temperature": 0, "top_p": 0.5, "use_mmap": False, "stop": ["a", "b"]}
    typed, warnings = check_options(values)
    assert typed == values
    assert warnings == []
    assert isinstance(typed["num_predict"], int)
    assert isinstance(typed["temperature"], float)
    assert msgspec.convert({"temperature": typed["temperature"], "stop": typed["stop"]}, Sampling).stop == ("a", "b")


def test_values_when_null_or_one_string() -> None:
    assert check_options({"temperature": None, "stop": "END"}) == ({"stop": ["END"]}, [])


@pytest.mark.parametrize("name", INTS)
@pytest.mark.parametrize("value", [4.7, "4", True, [4], {}, float("nan"), float("inf"), 1 << 63, 10**400])
def test_error_when_an_integer_is_something_else(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f'option "{name}" must be of type int, not '):
        check_options({name: value})


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", ["0.5", True, [0], float("nan"), float("-inf"), 1e39, 10**400])
def test_error_when_a_float_is_something_else(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f'option "{name}" must be of type float32, not '):
        check_options({name: value})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("use_mmap", 1, "bool"),
        ("use_mmap", "true", "bool"),
        ("stop", 1, "string list"),
        ("stop", ["a", 1], "string list"),
        ("tensor_split", 1, "float32 list"),
        ("tensor_split", [1, "2"], "float32 list"),
    ],
)
def test_error_when_another_type_is_wrong(name: str, value: Any, kind: str) -> None:
    with pytest.raises(InvalidRequest, match=f'option "{name}" must be of type {kind}, not '):
        check_options({name: value})


def test_warning_when_an_option_is_unknown() -> None:
    typed, warnings = check_options({"temp": 0, "num_predict": 4, "tfs_z": 1, "zzz": [], "x" * 500: 1})
    assert typed == {"num_predict": 4}
    assert warnings[0] == 'unknown option "temp" was ignored; did you mean "temperature"?'
    assert warnings[1] == 'option "tfs_z" has no effect'
    assert warnings[2] == 'unknown option "zzz" was ignored'
    assert len(warnings[3]) < 100


@pytest.mark.parametrize(
    ("name", "texts", "value"),
    [
        ("num_ctx", ["4096"], 4096),
        ("seed", [" -1 "], -1),
        ("top_k", ["20", "+30"], 30),
        ("temperature", ["1e-1"], 0.1),
        ("temperature", ["1"], 1.0),
        ("use_mmap", ["true"], True),
        ("use_mmap", ["F"], False),
        ("tensor_split", ["3, 1.5"], [3.0, 1.5]),
        ("stop", ["a", " b ", ""], ["a", " b ", ""]),
    ],
)
def test_option_when_read_from_text(name: str, texts: list[str], value: Any) -> None:
    parsed = parse_option(name, texts)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ["1.5", "4.0", "", "1_000", "0x10", "٤", "9223372036854775808", "9" * 5000])
def test_error_when_text_is_no_integer(text: str) -> None:
    with pytest.raises(ValueError, match="num_ctx takes int, not "):
        parse_option("num_ctx", [text])


@pytest.mark.parametrize("text", ["warm", "", "nan", "inf", "1e39", "1_0.5", "٠.٥"])
def test_error_when_text_is_no_float(text: str) -> None:
    with pytest.raises(ValueError, match="temperature takes float32, not "):
        parse_option("temperature", [text])


@pytest.mark.parametrize("text", ["yes", "", "2", "truе"])
def test_error_when_text_is_no_bool(text: str) -> None:
    with pytest.raises(ValueError, match="use_mmap takes true or false, not "):
        parse_option("use_mmap", [text])


@pytest.mark.parametrize(("name", "text"), [("seed", "-9223372036854775807"), ("temperature", str(FLOAT32_MAX))])
def test_option_when_read_from_text_and_checked_again(name: str, text: str) -> None:
    typed, warnings = check_options(json.loads(json.dumps({name: parse_option(name, [text])})))
    assert str(typed[name]) == text
    assert warnings == []


@pytest.mark.parametrize(
    ("word", "expected"), [("temprature", "temperature"), ("t", "temperature"), ("quux", None), ("", None)]
)
def test_nearest_when_a_word_is_misspelt(word: str, expected: str | None) -> None:
    assert nearest(word, ["seed", "temperature"]) == expected


@pytest.mark.parametrize(
    ("name", "value"), [("num_batch", 2), ("num_thread", 100_000), ("num_ctx", -1), ("num_ctx", 1 << 40)]
)
def test_number_that_no_engine_can_bear_is_refused_with_the_range(name: str, value: int) -> None:
    with pytest.raises(InvalidRequest, match=f'option "{name}" must be from'):
        check_options({name: value})


def test_zero_means_choose_for_me() -> None:
    assert check_options({"num_batch": 0, "num_thread": 0, "num_ctx": 0})[1] == []
