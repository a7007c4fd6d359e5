"""Bodies of requests as msgspec types: JSON to a Body, errors that name the field, and what nobody knows named.

docs/openapi.yaml is made from the same types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ...core.errors import InvalidRequest
from ...core.options import nearest

_MAX_SHOWN = 40
_WORDS = {
    "str": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_TYPES = {"str": str, "bool": bool, "int": int, "array": list, "object": dict}
_MISMATCH = re.compile(r"^Expected `([^`]+)`, got `([^`]+)`")
_BOUND = re.compile(r"^Expected `[^`]+` (<=|>=) (\S+)$")
_PLACE = re.compile(r" - at `\$\.?(.*)`$")


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What every body may hold. `strict` makes an error of what would otherwise be a warning."""

    strict: bool | None = None


B = TypeVar("B", bound=msgspec.Struct)


def parse_json(data: bytes) -> dict[str, Any]:
    """A body as an object. NaN passes, so that the check of the option that holds it can name it.

    Errors: InvalidRequest for no body, broken JSON, nesting too deep, or anything but an object.
    """
    if not data.strip():
        raise InvalidRequest("missing request body")
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError:
        value = _parse_leniently(data)
    except RecursionError:
        raise InvalidRequest("invalid JSON: nested too deeply") from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object")
    return value


def read_body(value: dict[str, Any], kind: type[B]) -> B:
    """A parsed body as its type. Errors: InvalidRequest names the field and what it must be."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_explain(str(error), value)) from None
    except RecursionError:
        raise InvalidRequest("invalid JSON: nested too deeply") from None


def unknown_fields(value: dict[str, Any], kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """A warning for each field, at any depth, that the type does not know; with the nearest name that it does."""
    return tuple(_find_unknown(value, kind, ""))


def _find_unknown(value: Any, kind: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict | list):
        return
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        fields = _field_types(kind)
        tag = kind.__struct_config__.tag_field
        for name, item in value.items():
            if name in fields:
                yield from _find_unknown(item, fields[name], f"{where}{name}.")
            elif name != tag:
                near = nearest(str(name), list(fields))
                hint = f'; did you mean "{near}"?' if near else ""
                yield f'unknown field "{where}{str(name)[:60]}" was ignored{hint}'
    elif isinstance(value, list) and get_origin(kind) is list:
        for index, item in enumerate(value):
            yield from _find_unknown(item, get_args(kind)[0], f"{where[:-1]}[{index}].")
    elif get_origin(kind) in (Union, UnionType):
        yield from _find_unknown(value, _chosen(value, get_args(kind)), where)


@cache
def _field_types(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Types of fields by their names in JSON. Working them out takes longer than all else that a request costs."""
    hints = get_type_hints(kind)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}


def _chosen(value: Any, kinds: tuple[Any, ...]) -> Any:
    """The member of a union that a value was read as, as far as unknown fields can lie in it."""
    if isinstance(value, list):
        return next((kind for kind in kinds if get_origin(kind) is list), None)
    structs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    for kind in structs:
        config = kind.__struct_config__
        if config.tag is not None and isinstance(value, dict) and value.get(config.tag_field) == config.tag:
            return kind
    return structs[0] if len(structs) == 1 and NoneType in kinds else None


def _explain(message: str, value: dict[str, Any]) -> str:
    """msgspec's words as ours: `messages[2].content must be a string, not 5`."""
    place = _PLACE.search(message)
    where = place.group(1) if place else "the body"
    what = message[: place.start()] if place else message
    mismatch = _MISMATCH.match(what)
    if mismatch:
        names = [name.strip() for name in mismatch.group(1).split("|")]
        where = _name_keys(where, value, names)
        wanted = [_WORDS.get(name, name) for name in names]
        shown = _shown(value, where)
        return f"{where} must be {' or '.join(name for name in wanted if name != 'null')}, not {shown}"
    bound = _BOUND.match(what)
    if bound:
        limit = "at most" if bound.group(1) == "<=" else "at least"
        return f"{where} must be {limit} {bound.group(2)}, not {_shown(value, where)}"
    return f"{where}: {what[:1].lower()}{what[1:]}".replace("`", '"')


def _shown(value: Any, where: str) -> str:
    for step in re.findall(r"'[^']*'|[^.\[\]]+", where):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step.strip("'")]
        except (KeyError, IndexError, TypeError, ValueError):
            return "something else"
    return repr(value)[:_MAX_SHOWN]


def _name_keys(where: str, value: Any, wanted: list[str]) -> str:
    """A place with msgspec's `[...]`, which stands for any key of an object, as the key that has the wrong type."""
    field, dots, _ = where.partition("[...]")
    found = value.get(field) if dots else None
    if not isinstance(found, dict):
        return where
    types = tuple(kind for name, kind in _TYPES.items() if name in wanted)
    wrong = next((key for key, item in found.items() if not isinstance(item, types)), None)
    return where if wrong is None else f"{field}['{wrong[:60]}']"


def _parse_leniently(data: bytes) -> Any:
    try:
        value = json.loads(data)
        # Half of a surrogate pair is no text, and could not be sent on to a runner.
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise InvalidRequest("invalid JSON: a string holds half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"invalid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"invalid JSON: the body is not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError):
        raise InvalidRequest("invalid JSON: a number is too long or the nesting is too deep") from None
