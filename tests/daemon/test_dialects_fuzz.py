"""Any JSON body, on any endpoint of any dialect, is a call or an error that is the client's.

Bodies are built from the types that the endpoints declare, with values that fit more often than not, so that the search
goes deep into each parse function; what comes out must be fit for the wire to a runner.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from corral.core.errors import CorralError, InvalidRequest
from corral.core.types import EmbedRequest, GenerateRequest
from corral.core.wire import Embed, Generate, ToRunner, encode_frame
from corral.daemon.dialects import DIALECTS
from corral.daemon.dialects.endpoint import Call, EmbedCall, Endpoint
from hypothesis import given, settings
from hypothesis import strategies as st

# Texts that mean something to one field or another: roles, kinds of parts, choices, numbers, schemas.
WORDS = """user assistant system developer tool function text image_url input_text output_text input_image message
function_call function_call_output reasoning tool_use tool_result thinking image base64 auto none required any json
json_object json_schema regex value low high max float enabled disabled adaptive f call_1 5 5m -1 {} {"a":1} ["a"]
data:image/png;base64,iVBORw0KGgo= iVBORw0KGgo= image/png""".split()
KEYS = """type role content text name arguments function id url source data media_type schema json_schema input
parameters effort enabled city properties required 5""".split()

ROLES = "user assistant system developer tool function".split()
TYPES = """text image_url image input_text output_text input_image message function function_call function_call_output
reasoning thinking tool_use tool_result base64 json json_schema json_object regex""".split()

TEXT = st.sampled_from(["", *WORDS]) | st.text(max_size=5)
NUMBER = st.integers(-2, 200) | st.integers(-(1 << 65), 1 << 65) | st.floats()
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


def _endpoints() -> dict[str, Endpoint]:
    rows = [row.partition(":") for row in DIALECTS.values()]
    found = [endpoint for module, _, name in rows for endpoint in getattr(import_module(module), name)]
    return {f"{endpoint.method} {endpoint.path}": endpoint for endpoint in found}


ENDPOINTS = _endpoints()


@cache
def fitting(kind: Any) -> st.SearchStrategy[Any]:
    """JSON values that fit a type, now and then others."""
    kinds = _of_kind(kind)
    return st.integers(0, 15).flatmap(lambda number: kinds if number else JSON)


def _of_kind(kind: Any) -> st.SearchStrategy[Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        return _of_kind(get_args(kind)[0])
    if origin in (Union, UnionType):
        return st.one_of([fitting(part) for part in get_args(kind) if part is not NoneType])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return st.deferred(lambda: _object(kind))
    if origin in (list, tuple):
        return st.lists(fitting(get_args(kind)[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.sampled_from(KEYS), fitting(get_args(kind)[1]), max_size=4)
    scalars: dict[Any, st.SearchStrategy[Any]] = {str: TEXT, bool: st.booleans(), int: NUMBER, float: NUMBER}
    return scalars.get(kind, JSON)


def _object(kind: type[msgspec.Struct]) -> st.SearchStrategy[dict[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.encode_name: fitting(hints[field.name]) for field in msgspec.structs.fields(kind)}
    tag = kind.__struct_config__.tag
    head: dict[str, st.SearchStrategy[Any]] = {}
    if tag is not None:
        head[str(kind.__struct_config__.tag_field)] = st.just(tag)
    head |= {name: st.sampled_from(words) for name, words in (("role", ROLES), ("type", TYPES)) if name in fields}
    names = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True) if fields else st.just([])
    return names.flatmap(lambda chosen: st.fixed_dictionaries(head | {name: fields[name] for name in chosen}))


@pytest.mark.parametrize("name", ENDPOINTS)
def test_any_body_is_a_call_or_a_refusal(name: str) -> None:
    endpoint = ENDPOINTS[name]
    needed = {field: fitting(hint) for field, hint in _needed(endpoint).items()}

    @settings(max_examples=150, deadline=None)
    @given(_object(endpoint.body), st.fixed_dictionaries(needed))
    def check(body: dict[str, Any], more: dict[str, Any]) -> None:
        try:
            call = endpoint.read({"model": "m", **more, **body})
        except CorralError as error:
            assert 400 <= error.status < 500
            assert error.message
        else:
            assert isinstance(call, Call | EmbedCall)
            _send(call)

    check()


def _send(call: Call | EmbedCall) -> None:
    """Make the frames of a call; only whole numbers beyond 64 bits may be refused here."""
    frames: list[ToRunner] = []
    if isinstance(call, Call):
        frames += [Generate(GenerateRequest(0, prompt)) for prompt in call.prompts]
    else:
        frames.append(Embed(EmbedRequest(0, call.inputs)))
    try:
        for frame in frames:
            encode_frame(frame)
    except InvalidRequest as error:
        assert "64 bits" in error.message


def _needed(endpoint: Endpoint) -> dict[str, Any]:
    """The field without which most bodies are refused at once."""
    hints = get_type_hints(endpoint.body, include_extras=True)
    name = next((name for name in ("messages", "input", "inputs", "prompt") if name in hints), None)
    return {name: hints[name]} if name else {}
