"""Grammars of forced calls: each takes its format's calls and no prose, and what it lets through is read as calls."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from corral.modelfile.output.bare_calls import GENERIC
from corral.modelfile.output.call_format import CallFormat
from corral.modelfile.output.grammar import MAX_CALLS
from corral.modelfile.output.pieces import CallPiece
from corral.modelfile.output.syntax import OutputSyntax
from corral.modelfile.output.table import FORMATS
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

END = 256
FIRST_SPECIAL = 257
PLACE = {
    "type": "object",
    "properties": {"lat": {"type": "number", "minimum": -90, "maximum": 90}},
    "required": ["lat"],
}


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name} | ({"parameters": parameters} if parameters else {})}


TOOLS = [
    tool("get_time"),
    tool(
        "get_weather",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
                "sky": {"type": "string", "enum": ["clear", 'so "so"', ""]},
                "place": {"$ref": "#/$defs/place"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "any": {},
            },
            "required": ["city", "days"],
            "$defs": {"place": PLACE},
        },
    ),
    tool("find.é-2", {"$ref": "#/$defs/place", "$defs": {"place": PLACE}}),
]
EVERY = [pytest.param(row, id=row.name) for row in (*FORMATS, GENERIC)]
each_format = pytest.mark.parametrize("row", EVERY)
WELL_FORMED = {
    "harmony": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    '{"city": "Paris", "days": 2}',
    "deepseek-r1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
    '{"city": "Paris", "days": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek-v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city":"Paris","days":2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "Paris", "days": 2}<|tool_call_end|><|tool_calls_section_end|>',
    "command-r7b": '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": '
    '{"city": "Paris", "days": 2}}\n]<|END_ACTION|>',
    "command-r": 'Action: ```json\n[\n    {\n        "tool_name": "get_weather",\n        "parameters": {\n'
    '            "city": "Paris",\n            "days": 2\n        }\n    }\n]```',
    "mistral-named": '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 2}',
    "mistral": '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]',
    "qwen-coder": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n"
    "</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
    "<arg_value>2</arg_value>\n</tool_call>",
    "functionary-v3.1": '<function=get_weather>{"city": "Paris", "days": 2}</function>',
    "phi": '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]<|/tool_call|>',
    "granite": '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]',
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>',
    "llama": '{"name": "get_weather", "parameters": {"city": "Paris", "days": 2}}',
    "functools": 'functools[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]',
    "functionary-v3.2": 'get_weather\n{"city": "Paris", "days": 2}',
    "llama-3.2": '{"name": "get_weather", "parameters": {"city": "Paris", "days": 2}}',
    "generic": '{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}',
}


class Bytes:
    """A vocabulary of all bytes, an end, and some special tokens. Behind llguidance's protocol of tokenizers."""

    def __init__(self, specials: list[str]) -> None:
        self.eos_token_id = END
        self.bos_token_id = None
        self.ids = {text: FIRST_SPECIAL + number for number, text in enumerate(specials)}
        self.tokens = [bytes([value]) for value in range(256)] + [f"<s{text}>".encode() for text in ("end", *specials)]
        self.special_token_ids = [END, *self.ids.values()]
        self.texts = {token: text for text, token in self.ids.items()}

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)

    def tokenize(self, text: str) -> list[int]:
        """Tokens, with special ones for the texts of such."""
        for special, token in self.ids.items():
            before, found, after = text.partition(special)
            if found:
                return [*self.tokenize(before), token, *self.tokenize(after)]
        return list(text.encode())

    def text(self, tokens: list[int]) -> str:
        pieces = (self.texts[token].encode() if token in self.texts else bytes([token]) for token in tokens)
        return b"".join(pieces).decode()


class Matcher:
    """A grammar over a vocabulary."""

    def __init__(self, row: CallFormat, with_specials: bool, **options: Any) -> None:
        self.vocabulary = Bytes(sorted(row.specials) if with_specials else [])
        lark = OutputSyntax(None, row).call_grammar(
            options.pop("tools", TOOLS), special_tokens=self.vocabulary.ids, **options
        )
        grammar = LLMatcher.grammar_from_lark(lark)
        tokenizer = LLTokenizer(TokenizerWrapper(self.vocabulary), eos_token=END)
        is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar, tokenizer)
        assert not is_error, messages
        self._matcher = LLMatcher(tokenizer, grammar, log_level=0)
        assert not self._matcher.is_error(), self._matcher.get_error()

    def takes(self, text: str) -> bool:
        """Whether a whole text is let through."""
        tokens = self.vocabulary.tokenize(text)
        return self._matcher.try_consume_tokens(tokens) == len(tokens) and self._matcher.is_accepting()

    def allowed(self) -> list[int]:
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        return list(np.flatnonzero(np.unpackbits(mask, bitorder="little")))

    def wander(self, chance: random.Random, num_steps: int) -> str | None:
        """A text that the grammar lets through, by chance, or None when it has not ended in time."""
        tokens: list[int] = []
        for _ in range(num_steps):
            allowed = self.allowed()
            # What ends things is preferred, or strings would never end.
            enders = [token for token in (END, *b'"}]<') if token in allowed]
            token = int(chance.choice(enders if enders and chance.random() < 0.3 else allowed))
            if token == END:
                return self.vocabulary.text(tokens)
            assert self._matcher.consume_token(token)
            tokens.append(token)
        return None


def read(row: CallFormat, text: str, forced: bool) -> list[tuple[str, Any]]:
    """The calls of a text that holds nothing else."""
    parser = OutputSyntax(None, row).parser(TOOLS, forced=forced)
    pieces = [piece for part in text for piece in parser.feed(part)] + parser.finish()
    calls: list[tuple[str, str]] = []
    for piece in pieces:
        assert isinstance(piece, CallPiece), (text, piece)
        if piece.name:
            calls.append((piece.name, ""))
        calls[-1] = calls[-1][0], calls[-1][1] + piece.arguments
    return [(name, json.loads(arguments)) for name, arguments in calls]


@each_format
@pytest.mark.parametrize("with_specials", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_well_formed_call_is_taken_and_read(row: CallFormat, with_specials: bool, parallel: bool) -> None:
    text = WELL_FORMED[row.name]
    assert Matcher(row, with_specials, parallel=parallel).takes(text)
    for forced in (False, True):
        assert read(row, text, forced) == [("get_weather", {"city": "Paris", "days": 2})]


@each_format
def test_prose_and_broken_calls_are_refused(row: CallFormat) -> None:
    text = WELL_FORMED[row.name]
    for wrong in (
        "Hello",
        "",
        text[:-1],
        text + " Hello",
        text.replace("get_weather", "get_news"),
        text.replace("2", "x"),
    ):
        assert not Matcher(row, False).takes(wrong), wrong
    assert not Matcher(row, False, names=("get_time",)).takes(text)
    assert Matcher(row, False, names=("get_weather", "get_time")).takes(text)


@each_format
@pytest.mark.parametrize("with_specials", [False, True])
def test_whatever_is_let_through_is_read_as_calls(row: CallFormat, with_specials: bool) -> None:
    chance = random.Random(1)
    num_read = 0
    for _ in range(6):
        text = Matcher(row, with_specials).wander(chance, 400)
        if text is None:
            continue
        calls = read(row, text, forced=True)
        assert calls == read(row, text, forced=False)
        assert 1 <= len(calls) <= MAX_CALLS
        assert {name for name, _ in calls} <= {"get_time", "get_weather", "find.é-2"}
        num_read += 1
    assert num_read


@each_format
def test_one_call_where_not_parallel(row: CallFormat) -> None:
    chance = random.Random(2)
    texts = [Matcher(row, False, tools=TOOLS[:1], parallel=False).wander(chance, 400) for _ in range(4)]
    assert [read(row, text, forced=True) for text in texts if text] == [[("get_time", {})] for text in texts if text]


def test_arguments_stream_where_forced() -> None:
    parser = OutputSyntax(None, GENERIC).parser(TOOLS, forced=True)
    pieces = [
        piece
        for part in ('{"name": "get_weather", "argum', 'ents": {"city": "Pa', 'ris", "days" : 2', "}}")
        for piece in parser.feed(part)
    ]
    assert pieces == [
        CallPiece(0, "get_weather", ""),
        CallPiece(0, "", '{"city":"Pa'),
        CallPiece(0, "", 'ris","days":2'),
        CallPiece(0, "", "}"),
    ]
    assert parser.finish() == []


def test_call_that_is_cut_off_where_forced_leaves_no_text_behind() -> None:
    for end in ('{"city": "Pa', '{"city": "Paris"}', '{"city": "Paris"}}\n</tool'):
        parser = OutputSyntax(None, next(row for row in FORMATS if row.name == "hermes")).parser(TOOLS, forced=True)
        pieces = parser.feed('<tool_call>\n{"name": "get_weather", "arguments": ' + end) + parser.finish()
        assert all(isinstance(piece, CallPiece) for piece in pieces)


def test_free_form_parameters_stay_free() -> None:
    tools = [tool("get_time", {"type": "object"})]
    assert Matcher(GENERIC, False, tools=tools).takes('{"name": "get_time", "arguments": {"any": [1]}}')
    closed = [tool("get_time", {"type": "object", "properties": {}})]
    assert not Matcher(GENERIC, False, tools=closed).takes('{"name": "get_time", "arguments": {"any": [1]}}')
