"""Finds the shipped Go template that means the same as a model's own Jinja template, if there is one.

Both render a set of conversations, and every text must be the same: what looks alike and is not stays Jinja. So do
templates that write the tools of a request: a Go template gets only a part of their JSON schemas, in another order.
One rule of Ollama's goes beyond that: with a Go template, neighbours of one role are merged before it is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import InvalidGGUF, InvalidTemplate
from ..core.types import Message, Text, Thinking, ToolCall, ToolResult, text_message
from .capabilities import find_capabilities
from .gguf import GGUF, ArrayRef, read_text
from .gotemplate.prompt import GoPrompt
from .jinja import ChatTemplate
from .output.syntax import find_syntax
from .templates import TEMPLATES, Row

_FOLDER = Path(__file__).with_name("templates")
_MAX_JINJA_CHARS = 1 << 15
_TRIMMED = re.compile(r'\{\{ template "trimmed" (\S+|\(.*?\)) \}\}')
# Where the file does not say whether the tokenizer begins every prompt with a token: the ones that do in llama.cpp.
_BEGINNING_MODELS = ("llama",)
_BEGINNING_PRE = ("llama3", "llama-v3", "llama-bpe")


class KnownTemplate(NamedTuple):
    """A Go template, the name that users know it by, and the stop strings that it needs."""

    name: str
    source: str
    stop: tuple[str, ...]


class _Candidate(NamedTuple):
    known: KnownTemplate
    prompt: GoPrompt


class _Probe(NamedTuple):
    """A conversation to be rendered. A dialogue has several turns, of the roles that every template knows."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    think: bool | None = None
    is_dialogue: bool = False


_HI = text_message("user", "Hi there")
_HELLO = text_message("assistant", "Hello! What can I do?")
_BRIEF = text_message("system", "Be brief.")
_MORE = text_message("user", "Tell me more.")
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place, in <°C> & words",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "days": {"type": "integer", "default": 1, "minimum": 1}},
            "required": ["place"],
        },
    },
}
_STRANGE = (
    text_message("system", " Sprich «deutsch»,\n\n  bitte \\n. "),
    text_message("user", '\n\tWie heißt 你好 <b>"auf" Deutsch</b> & {{ so }}?  \n'),
    text_message("assistant", "  „Guten Tag“ 👋🏽, it's {% that %}.\n\n"),
    text_message("user", "Danke\u00a0!" + " und weiter" * 20 + "\r\n"),
    text_message("assistant", "  x"),
    _MORE,
)
_CALLING = (
    _HI,
    Message("assistant", (ToolCall("call_1", "weather", {"place": "Köln", "days": 2}),)),
    Message("tool", (ToolResult("call_1", "weather", "12 °C"),)),
)
_FIRST = _Probe((_HI,))
_PROBES = (
    _FIRST,
    _Probe((_HI, _HELLO, _MORE), is_dialogue=True),
    _Probe(_STRANGE, is_dialogue=True),
    _Probe(_STRANGE[1:], is_dialogue=True),
    _Probe((_BRIEF, _HI)),
    _Probe((_BRIEF, _HI, _HELLO, text_message("system", "Now be long."), _MORE)),
    _Probe(_CALLING, tools=(_TOOL,)),
    _Probe((_HI, Message("assistant", (Thinking("Greet back."), Text("Hello!"))), _MORE), think=True),
    _Probe((_BRIEF, _HI), think=False),
)


def detect_template(gguf: GGUF, path: Path) -> KnownTemplate | None:
    """The Go template for the Jinja template that a GGUF file carries, `path` being the file."""
    jinja = gguf.chat_template
    if jinja is None or gguf.pooling_type is not None or not _find_rows(jinja):
        return None
    try:
        bos_text, eos_text = _token_text(gguf, path, "bos"), _token_text(gguf, path, "eos")
    except InvalidGGUF:
        return None
    return find_template(jinja, bos_text, eos_text, adds_bos=_adds_bos(gguf))


def find_template(jinja: str, bos_text: str, eos_text: str, adds_bos: bool = True) -> KnownTemplate | None:
    """The Go template that renders as `jinja` does, or None where there is none or `jinja` is broken.

    The texts are those of the special tokens. With `adds_bos` the tokenizer begins every prompt with bos itself, so
    that a prompt which begins with `bos_text` says no more than one that does not.
    """
    candidates = [candidate for name, row in _find_rows(jinja) for candidate in _read_variants(name, row)]
    if not candidates:
        return None
    try:
        template = ChatTemplate(jinja, bos_text, eos_text)
    except InvalidTemplate:
        return None
    candidates = _narrow(template, bos_text if adds_bos else "", candidates)
    return next((candidate.known for candidate in candidates if _keeps_all(candidate.known, jinja)), None)


def _narrow(template: ChatTemplate, start: str, candidates: list[_Candidate]) -> list[_Candidate]:
    """The candidates that render as the Jinja template does; that may put `start` in front.

    A conversation that the Jinja template refuses tells nothing, but the first one and a dialogue must be rendered.
    """
    num_dialogues = 0
    for probe in _PROBES:
        expected = _expected(template, probe)
        if expected is None and probe is not _FIRST:
            continue
        candidates = [candidate for candidate in candidates if expected in _accepted(candidate, probe, start)]
        if not candidates:
            return []
        num_dialogues += probe.is_dialogue
    return candidates if num_dialogues else []


def _expected(template: ChatTemplate, probe: _Probe) -> str | None:
    thinking = {} if probe.think is None else {"enable_thinking": probe.think, "thinking": probe.think}
    try:
        return template.render(probe.messages, probe.tools, extra=thinking)
    except InvalidTemplate:
        return None


def _accepted(candidate: _Candidate, probe: _Probe, start: str) -> tuple[str, str]:
    text = candidate.prompt.render(probe.messages, probe.tools, probe.think)
    return text, start + text


def _find_rows(jinja: str) -> list[tuple[str, Row]]:
    if len(jinja) > _MAX_JINJA_CHARS:
        return []
    return [(name, row) for name, row in TEMPLATES.items() if all(sign in jinja for sign in row.signs)]


def _read_variants(name: str, row: Row) -> Iterator[_Candidate]:
    """Every file of a row as it is, and one that trims messages also without that."""
    for file in row.files:
        source = _read(file)
        plain = _TRIMMED.sub(r"{{ \1 }}", source)
        for text in (plain,) if plain == source else (source + _read("trimmed"), plain):
            yield _Candidate(KnownTemplate(name, text, row.stop), GoPrompt(text))


def _read(file: str) -> str:
    return (_FOLDER / f"{file}.gotmpl").read_text(encoding="utf-8").removesuffix("\n")


def _keeps_all(known: KnownTemplate, jinja: str) -> bool:
    """Whether a model with the Go template can do all that it can with its own, and its answers are read the same."""
    gguf = GGUF(3, {"tokenizer.chat_template": jinja}, (), 32, 0, 0)
    lost = set(find_capabilities(gguf, None, False)) - set(find_capabilities(gguf, known.source, False))
    same_thinking = find_syntax(jinja, is_go=False).thinking == find_syntax(known.source, is_go=True).thinking
    return not lost and same_thinking


def _token_text(gguf: GGUF, path: Path, name: str) -> str:
    """The text of a special token, "" where the file names none."""
    token = gguf.metadata.get(f"tokenizer.ggml.{name}_token_id")
    tokens = gguf.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(token, int) or isinstance(token, bool) or token < 0:
        return ""
    if isinstance(tokens, ArrayRef):
        return read_text(path, tokens, token) if token < tokens.count else ""
    text = tokens[token] if isinstance(tokens, list) and token < len(tokens) else ""
    return text if isinstance(text, str) else ""


def _adds_bos(gguf: GGUF) -> bool:
    told = gguf.metadata.get("tokenizer.ggml.add_bos_token")
    if isinstance(told, bool):
        return told
    names = gguf.metadata.get("tokenizer.ggml.model"), gguf.metadata.get("tokenizer.ggml.pre")
    return names[0] in _BEGINNING_MODELS or names[1] in _BEGINNING_PRE
