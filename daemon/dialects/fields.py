"""Reading JSON bodies field by field: each getter checks the type and names the field when it is wrong."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ...core.errors import InvalidRequest

_MAX_TOP_LOGPROBS = 20


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


class Fields:
    """Getters over one object. null counts as absent; `where` is put before names in errors, as in `messages[2].`."""

    def __init__(self, body: dict[str, Any], where: str = "") -> None:
        self._body = body
        self._where = where

    def text(self, *names: str) -> str | None:
        """A string under the first of the names that is there."""
        value: str | None = self._get(names, str, "a string")
        return value

    def model(self, *names: str) -> str:
        """A model's name as the client wrote it, under the first of the names that has one.

        Errors: InvalidRequest when none has.
        """
        for name in names:
            shown = (self.text(name) or "").strip()
            if shown:
                return shown
        raise InvalidRequest("model is required")

    def top_logprobs(self) -> int | None:
        """How many alternatives each token is to have; None when no log-probabilities are wanted."""
        number = self.number("top_logprobs", 0, _MAX_TOP_LOGPROBS) or 0
        return number if self.flag("logprobs", False) else None

    def flag(self, name: str, default: bool) -> bool:
        """A boolean."""
        value = self._get((name,), bool, "true or false")
        return default if value is None else value

    def mapping(self, name: str) -> dict[str, Any]:
        """An object; {} when absent."""
        return self._get((name,), dict, "an object") or {}

    def items(self, name: str) -> list[Any] | None:
        """A list."""
        value: list[Any] | None = self._get((name,), list, "a list")
        return value

    def objects(self, name: str) -> list[dict[str, Any]]:
        """A list of objects; [] when absent."""
        found = self.items(name) or []
        for index, item in enumerate(found):
            if not isinstance(item, dict):
                raise InvalidRequest(f"{self._where}{name}[{index}] must be an object, not {_shown(item)}")
        return found

    def texts(self, name: str) -> dict[str, str]:
        """An object whose values are strings; {} when absent."""
        found = self.mapping(name)
        for key, value in found.items():
            if not isinstance(value, str):
                raise InvalidRequest(f"{self._where}{name}: {key[:60]!r} must be a string, not {_shown(value)}")
        return found

    def number(self, name: str, low: int, high: int) -> int | None:
        """A whole number in a range, both ends included."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidRequest(f"{self._where}{name} must be a whole number from {low} to {high}")
        return value

    def raw(self, name: str) -> Any:
        """Whatever is there, None when absent."""
        return self._body.get(name)

    def _get(self, names: tuple[str, ...], kind: type, described: str) -> Any:
        for name in names:
            value = self._body.get(name)
            if value is None:
                continue
            if not isinstance(value, kind):
                raise InvalidRequest(f"{self._where}{name} must be {described}, not {_shown(value)}")
            return value
        return None


def _shown(value: Any) -> str:
    return repr(value)[:40]
