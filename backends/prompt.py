"""From a request to prompt tokens: render the chat, drop old turns that do not fit, and tokenize.

Texts of special tokens count as special only where the template wrote them. What a user or tool wrote is marked before
rendering with Unicode noncharacters, and tokenized as plain text afterwards; another marks where images stand.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ..core.errors import ContextExceeded, InvalidRequest
from ..core.types import (
    ChatPrompt,
    Image,
    InfillPrompt,
    Message,
    Part,
    Prompt,
    Text,
    TextPrompt,
    Thinking,
    TokensPrompt,
    ToolCall,
    ToolResult,
    text_message,
)
from ..modelfile.gotemplate.prompt import GoPrompt
from ..modelfile.jinja import ChatTemplate, mentions
from ..modelfile.output.syntax import GENERIC, OutputSyntax, describe_tools, find_syntax
from .protocol import Picture, PicturePart, PlacedPicture, Tokenizer

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_GUARDED = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_CACHED_TEMPLATES = 16
# The place of an image, with its number between two of these.
_IMAGE = "\ufdd2"
_IMAGE_MARK = re.compile(f"{_IMAGE}([0-9]+){_IMAGE}")
_STRAY = re.compile(f"[{_OPEN}{_CLOSE}{_IMAGE}]")
Pictures = Mapping[bytes, Picture]


class PreparedPrompt(msgspec.Struct, frozen=True):
    """What the engine gets, the text it was made from, and how many messages did not fit."""

    tokens: list[int]
    text: str
    num_dropped: int = 0
    pictures: tuple[PlacedPicture, ...] = ()

    @property
    def num_cells(self) -> int:
        """Tokens of the window that it takes."""
        return len(self.tokens) + sum(entry.part.num_cells + entry.start - entry.end for entry in self.pictures)


class PromptBuilder:
    """Prepares prompts for one loaded model."""

    def __init__(self, tokenizer: Tokenizer, chat_template: str | None) -> None:
        self._tokenizer = tokenizer
        self._source = chat_template or ""
        self._template = ChatTemplate(chat_template, tokenizer.bos_text, tokenizer.eos_text) if chat_template else None
        self._go_templates: dict[str, GoPrompt] = {}
        self._syntaxes: dict[str | None, OutputSyntax] = {}
        texts = sorted(tokenizer.specials, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, texts))) if texts else None

    def prepare(
        self,
        prompt: Prompt,
        window: int,
        truncate: bool,
        template: str | None = None,
        pictures: Pictures = MappingProxyType({}),
    ) -> PreparedPrompt:
        """Tokens for a prompt, fewer than `window` of them. `template` is a Go template in place of the model's Jinja.

        `pictures` has all that the prompt's images are, by their bytes.
        Errors: ContextExceeded with both numbers; InvalidTemplate when the template refuses the messages.
        """
        if isinstance(prompt, ChatPrompt):
            turns = _split_turns(prompt.messages)
            if truncate and len(turns) > 1:
                self._check_tokens("context", prompt.context)
                return self._fit_turns(prompt, turns, window, template, pictures)
        return _fitting(self._render_whole(prompt, template, pictures), window)

    def render(
        self, prompt: Prompt, window: int, template: str | None, pictures: Pictures = MappingProxyType({})
    ) -> PreparedPrompt:
        """The prompt of a request that generates nothing: old turns go, but what is too long still is shown whole."""
        try:
            return self.prepare(prompt, window, True, template, pictures)
        except ContextExceeded:
            return self._render_whole(prompt, template, pictures)

    def syntax(self, template: str | None, prompt: ChatPrompt) -> OutputSyntax:
        """The form in which answers hold thinking and calls, told from the template that renders the prompt."""
        if template not in self._syntaxes:
            while len(self._syntaxes) >= _CACHED_TEMPLATES:
                del self._syntaxes[next(iter(self._syntaxes))]
            source = self._source if template is None else template
            self._syntaxes[template] = find_syntax(source, is_go=template is not None)
        syntax = self._syntaxes[template]
        is_told = bool(prompt.tools) and not self._knows_tools(template)
        return dataclasses.replace(syntax, calls=GENERIC.calls) if is_told else syntax

    def _knows_tools(self, template: str | None) -> bool:
        if template is not None:
            return self._go_template(template).mentions("tools")
        return mentions(self._source, "tools")

    def _render_whole(self, prompt: Prompt, template: str | None, pictures: Pictures) -> PreparedPrompt:
        match prompt:
            case TextPrompt(text, parse_special, add_special):
                prefix = self._tokenizer.prefix() if add_special else []
                tokens = [*prefix, *self._tokenizer.encode(text, parse_special=parse_special)]
                return PreparedPrompt(_single_prefix(tokens, prefix), text)
            case TokensPrompt(tokens):
                self._check_tokens("prompt", tokens)
                return PreparedPrompt(list(tokens), self._decode(tokens))
            case InfillPrompt():
                return self._render_infill(prompt, template)
            case ChatPrompt():
                self._check_tokens("context", prompt.context)
                return self._render(prompt, prompt.messages, template, pictures)

    def _decode(self, tokens: Sequence[int]) -> str:
        pieces = (self._tokenizer.piece(token) or self._tokenizer.special_text(token).encode() for token in tokens)
        return b"".join(pieces).decode("utf-8", "replace")

    def _fit_turns(
        self, prompt: ChatPrompt, turns: list[list[Message]], window: int, template: str | None, pictures: Pictures
    ) -> PreparedPrompt:
        """Drop as few of the oldest turns as makes the rest fit; system messages and the last turn stay.

        Works from the newest turn back, so that a conversation of any length costs what its kept part does.
        """

        def render(num_kept: int) -> PreparedPrompt:
            kept = _without(turns, len(turns) - num_kept)
            prepared = self._render(prompt, kept, template, pictures)
            return msgspec.structs.replace(prepared, num_dropped=len(prompt.messages) - len(kept))

        fits, best = 0, None
        # A turn takes a token at the least.
        too_many = min(len(turns), window) + 1
        num_kept = 1
        while fits + 1 < too_many:
            prepared = render(num_kept)
            if prepared.num_cells < window:
                fits, best = num_kept, prepared
            else:
                too_many = num_kept
            doubled = 2 * num_kept
            num_kept = doubled if doubled < too_many else (fits + too_many) // 2
        return best if best is not None else _fitting(render(1), window)

    def _check_tokens(self, field: str, tokens: Sequence[int]) -> None:
        size = self._tokenizer.num_vocab
        strange = next((token for token in tokens if not 0 <= token < size), None)
        if strange is not None:
            raise InvalidRequest(
                f"{field}: token {strange} is not in this model's vocabulary of {size}: it is of another"
            )

    def _render(
        self, prompt: ChatPrompt, messages: Sequence[Message], template: str | None, pictures: Pictures
    ) -> PreparedPrompt:
        tools = [self._guard_json(tool) for tool in prompt.tools]
        if tools and not self._knows_tools(template):
            messages, tools = _tell_of_tools(messages, tools), []
        guarded = [_mark_images(self._guard(message), pictures) for message in messages]
        text = self._render_text(prompt, guarded, tools, template)
        if prompt.continue_last:
            text = _cut_after(text, guarded[-1].text)
        before = (prompt.context, len(self._tokenizer.prefix())) if prompt.context else ((), 0)
        tokens, placed = self._encode_marked(text, list(pictures.values()), *before)
        return PreparedPrompt(tokens, _STRAY.sub("", _IMAGE_MARK.sub("[img]", text)), pictures=tuple(placed))

    def _render_text(
        self, prompt: ChatPrompt, messages: list[Message], tools: list[dict[str, Any]], template: str | None
    ) -> str:
        if template is not None:
            return self._go_template(template).render(messages, tools, prompt.think)
        if self._template is None:
            return "\n\n".join(message.text for message in messages)
        variables = {**_thinking_variables(prompt.think), **prompt.variables}
        return self._template.render(messages, tools, not prompt.continue_last, extra=variables)

    def _render_infill(self, prompt: InfillPrompt, template: str | None) -> PreparedPrompt:
        if template is None:
            raise InvalidRequest("suffix needs a template with .Suffix: give one in `template` or in the Modelfile")
        prefix, suffix = self._guard_text(prompt.prefix), self._guard_text(prompt.suffix)
        text = self._go_template(template).render_infill(prefix, suffix)
        return PreparedPrompt(self._encode_guarded(text), _STRAY.sub("", text))

    def _go_template(self, source: str) -> GoPrompt:
        if source not in self._go_templates:
            while len(self._go_templates) >= _CACHED_TEMPLATES:
                del self._go_templates[next(iter(self._go_templates))]
            self._go_templates[source] = GoPrompt(source, blank_unknown=True)
        return self._go_templates[source]

    def _guard(self, message: Message) -> Message:
        return msgspec.structs.replace(message, parts=tuple(self._guard_part(part) for part in message.parts))

    def _guard_part(self, part: Part) -> Part:
        if isinstance(part, ToolCall):
            return msgspec.structs.replace(part, arguments=self._guard_json(part.arguments))
        if not isinstance(part, Text | Thinking | ToolResult):
            return part
        return msgspec.structs.replace(part, text=self._guard_text(part.text))

    def _guard_json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._guard_text(value)
        if isinstance(value, dict):
            return {self._guard_text(key): self._guard_json(item) for key, item in value.items()}
        return [self._guard_json(item) for item in value] if isinstance(value, list) else value

    def _guard_text(self, text: str) -> str:
        text = _STRAY.sub("", text)
        return self._special.sub(lambda match: f"{_OPEN}{match.group(0)}{_CLOSE}", text) if self._special else text

    def _encode_marked(
        self, text: str, pictures: Sequence[Picture], context: Sequence[int], num_skipped: int
    ) -> tuple[list[int], list[PlacedPicture]]:
        """Tokens of a rendered text behind `context`, and where among them pictures stand."""
        first, *rest = _IMAGE_MARK.split(text)
        tokens = [*context, *self._encode_guarded(first)[num_skipped:]]
        placed = []
        # re.split with one group gives numbers of pictures and texts in turn.
        for number, piece in zip(rest[::2], rest[1::2], strict=True):
            for part in pictures[int(number)].parts:
                if isinstance(part, PicturePart):
                    placed.append(PlacedPicture(len(tokens), part))
                    tokens += part.stand_ins
                else:
                    tokens += part
            tokens += self._encode_pieces(piece)
        return tokens, placed

    def _encode_guarded(self, text: str) -> list[int]:
        prefix = self._tokenizer.prefix()
        return _single_prefix([*prefix, *self._encode_pieces(text)], prefix)

    def _encode_pieces(self, text: str) -> list[int]:
        tokens: list[int] = []
        # re.split with one group gives template text and guarded text in turn.
        for index, piece in enumerate(_GUARDED.split(text)):
            piece = _STRAY.sub("", piece)
            if piece:
                tokens += self._tokenizer.encode(piece, parse_special=index % 2 == 0)
        return tokens


def _mark_images(message: Message, pictures: Pictures) -> Message:
    """A message in which marks stand for its images."""
    if not any(isinstance(part, Image) for part in message.parts):
        return message
    numbers = {data: number for number, data in enumerate(pictures)}
    marks = [
        Text(f"{_IMAGE}{numbers[part.data]}{_IMAGE}") if isinstance(part, Image) else part for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(marks))


def _single_prefix(tokens: list[int], prefix: list[int]) -> list[int]:
    """Templates often write the beginning-of-sequence token themselves; it must not stand there twice."""
    doubled = prefix and tokens[len(prefix) : 2 * len(prefix)] == prefix
    return tokens[len(prefix) :] if doubled else tokens


def _tell_of_tools(messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
    """Messages whose system prompt describes the tools, for a template that knows none."""
    described = describe_tools(tools)
    if messages and messages[0].role == "system":
        return [text_message("system", f"{messages[0].text}\n\n{described}"), *messages[1:]]
    return [text_message("system", described), *messages]


def _thinking_variables(think: bool | str | None) -> dict[str, Any]:
    """What Jinja templates read of it: Qwen and others `enable_thinking`, DeepSeek `thinking`, GPT-OSS the level."""
    if think is None:
        return {}
    level = {"reasoning_effort": think} if isinstance(think, str) else {}
    return {"enable_thinking": bool(think), "thinking": bool(think), **level}


def _cut_after(text: str, last: str) -> str:
    """A rendered chat up to the end of its last message, so that the answer goes on with it."""
    at = text.rfind(last.strip())
    if at < 0 or not last.strip():
        raise InvalidRequest("the answer cannot go on with the last message: the template changes its text")
    return text[: at + len(last.strip())]


def _split_turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages in turns: each starts at a user message. What stands before the first is part of it."""
    turns: list[list[Message]] = [[]]
    for message in messages:
        if message.role == "user" and any(earlier.role != "system" for earlier in turns[-1]):
            turns.append([])
        turns[-1].append(message)
    return turns


def _without(turns: list[list[Message]], num_dropped: int) -> list[Message]:
    systems = [message for turn in turns[:num_dropped] for message in turn if message.role == "system"]
    return systems + [message for turn in turns[num_dropped:] for message in turn]


def _fitting(prepared: PreparedPrompt, window: int) -> PreparedPrompt:
    if not prepared.tokens:
        raise InvalidRequest("the prompt is empty once it is rendered: send some text")
    if prepared.pictures and prepared.pictures[-1].end == len(prepared.tokens):
        raise InvalidRequest("the prompt ends in an image: some text must come after it")
    if prepared.num_cells >= window:
        raise ContextExceeded(
            f"the prompt has {prepared.num_cells} tokens and does not fit the window of {window}: "
            "shorten it or ask for a larger num_ctx"
        )
    return prepared
