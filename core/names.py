"""Model names: `[scheme://][host/][namespace/]model[:tag]`, the grammar of contract section 2.

A part starts with a letter, digit or `_` and goes on with those, `-`, `.` (not in a namespace) and `:` (host only).
A part has 1 to 80 bytes, a host 1 to 350. There are no digests in names.
"""

from __future__ import annotations

import re

import msgspec

from .errors import InvalidName

DEFAULT_HOST = "registry.ollama.ai"
DEFAULT_NAMESPACE = "library"
DEFAULT_TAG = "latest"
DEFAULT_SCHEME = "https"

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}\Z", re.ASCII)
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}\Z", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z", re.ASCII)


class ModelName(msgspec.Struct, frozen=True):
    """A whole model name, defaults filled in. Compare with `key`: names differ only when their lower case does."""

    host: str
    namespace: str
    model: str
    tag: str
    scheme: str = DEFAULT_SCHEME

    @property
    def full(self) -> str:
        """Every part, as in `registry.ollama.ai/library/llama3:latest`."""
        return f"{self.host}/{self.namespace}/{self.model}:{self.tag}"

    @property
    def path(self) -> str:
        """Place below `manifests/`, with `/` between parts."""
        return f"{self.host}/{self.namespace}/{self.model}/{self.tag}"

    @property
    def short(self) -> str:
        """Without the default host and namespace, always with the tag."""
        parts = [f"{self.model}:{self.tag}"]
        foreign = self.host.lower() != DEFAULT_HOST
        if foreign or self.namespace.lower() != DEFAULT_NAMESPACE:
            parts.insert(0, self.namespace)
        if foreign:
            parts.insert(0, self.host)
        return "/".join(parts)

    @property
    def key(self) -> str:
        """What two spellings of one name share."""
        return self.full.lower()


def parse_name(text: str) -> ModelName:
    """Read a model name and fill in the defaults.

    Errors: InvalidName when a part is empty, too long or holds a character that it may not hold.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = DEFAULT_SCHEME, text
    rest, tag = _split_tag(rest)
    parts = rest.split("/")
    if len(parts) > 3:
        raise _invalid(text)
    defaults = [DEFAULT_HOST, DEFAULT_NAMESPACE]
    host, namespace, model = defaults[: 3 - len(parts)] + parts
    checks = ((_HOST, host), (_NAMESPACE, namespace), (_PART, model), (_PART, tag))
    if not scheme or not all(pattern.match(part) for pattern, part in checks):
        raise _invalid(text)
    return ModelName(host, namespace, model, tag, scheme)


def request_name(text: str) -> ModelName:
    """Read a name as a request or a person writes it: blanks around it and a last `:local` are dropped."""
    return parse_name(text.strip().removesuffix(":local"))


def _split_tag(text: str) -> tuple[str, str]:
    colon = text.rfind(":")
    if colon > text.rfind("/"):
        return text[:colon], text[colon + 1 :]
    return text, DEFAULT_TAG


def _invalid(text: str) -> InvalidName:
    del text  # The contract fixes these words; a name can be long or hold control characters, so it is not echoed.
    return InvalidName("invalid model name")
