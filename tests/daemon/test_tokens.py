"""Tokens of texts and texts of tokens in each server's form, on the fake engine, whose tokens are bytes."""

from __future__ import annotations

from typing import Any

import pytest
from corral.core.errors import InvalidRequest
from corral.core.events import Rendered
from corral.core.types import TextPrompt
from corral.daemon.dialects.endpoint import Call
from corral.daemon.dialects.tokens import ENDPOINTS
from corral.daemon.dialects.tokens_encoder import print_offsets, print_pieces
from daemons import RunningDaemon

READERS = {endpoint.path: endpoint.read for endpoint in ENDPOINTS}
END = 256
HI = [{"role": "user", "content": "hi"}]


def read(path: str, **body: Any) -> Call:
    call = READERS[path](body)
    assert isinstance(call, Call)
    return call


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tokenize", {}, "one of content, inputs, prompt and messages, and it has none"),
        ("/tokenize", {"content": "a", "prompt": "a"}, "not content and prompt together"),
        ("/tokenize", {"messages": []}, "messages is required"),
        ("/tokenize", {"content": 5}, "content must be a string, not 5"),
        ("/detokenize", {}, "tokens is required"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0] must be at least 0, not -1"),
        ("/detokenize", {"tokens": ["a"]}, "tokens[0] must be a whole number, not 'a'"),
        ("/apply-template", {}, "messages is required"),
        ("/api/tokenize", {"model": "m"}, "prompt is required"),
        ("/api/tokenize", {"prompt": "a"}, "model is required"),
        ("/api/detokenize", {"tokens": [1]}, "model is required"),
    ],
)
def test_error_names_what_is_wrong(path: str, body: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(path, **body)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"content": "a"}, TextPrompt("a", parse_special=True, add_special=False)),
        (
            {"content": "a", "add_special": True, "parse_special": False},
            TextPrompt("a", parse_special=False, add_special=True),
        ),
        ({"inputs": "a"}, TextPrompt("a", parse_special=True, add_special=True)),
        ({"inputs": "a", "add_special_tokens": False}, TextPrompt("a", parse_special=True, add_special=False)),
        ({"prompt": "a"}, TextPrompt("a", parse_special=True, add_special=True)),
    ],
)
def test_each_form_has_its_own_defaults(body: dict[str, Any], prompt: TextPrompt) -> None:
    assert read("/tokenize", **body).prompts == (prompt,)


def test_nothing_is_cut_and_nothing_is_generated() -> None:
    call = read("/tokenize", content="a", keep_alive="1m", options={"num_ctx": 64})
    assert (call.render_only, call.want_context, call.truncate) == (True, True, False)
    assert (call.keep_alive, call.options) == (60, {"num_ctx": 64})


async def test_tokenize_in_the_form_of_llamacpp(daemon: RunningDaemon) -> None:
    assert await daemon.post("/tokenize", {"content": "hi"}) == (200, {"tokens": list(b"hi")})
    assert await daemon.post("/tokenize", {"content": "h<end>"}) == (200, {"tokens": [ord("h"), END]})
    _, plain = await daemon.post("/tokenize", {"content": "<end>", "parse_special": False})
    assert plain == {"tokens": list(b"<end>")}
    _, pieces = await daemon.post("/tokenize", {"content": "hé", "with_pieces": True})
    assert pieces["tokens"] == [
        {"id": ord("h"), "piece": "h"},
        {"id": 0xC3, "piece": [0xC3]},
        {"id": 0xA9, "piece": [0xA9]},
    ]
    assert await daemon.post("/tokenize", {"content": ""}) == (200, {"tokens": []})


async def test_tokenize_in_the_form_of_tgi(daemon: RunningDaemon) -> None:
    _, rows = await daemon.post("/tokenize", {"inputs": "hi"})
    assert rows == [
        {"id": ord("h"), "text": "h", "start": 0, "stop": 1},
        {"id": ord("i"), "text": "i", "start": 1, "stop": 2},
    ]


async def test_tokenize_in_the_form_of_vllm(daemon: RunningDaemon) -> None:
    _, answer = await daemon.post("/tokenize", {"model": "fake", "prompt": "hi", "return_token_strs": True})
    assert (answer["count"], answer["tokens"], answer["token_strs"]) == (2, list(b"hi"), ["h", "i"])
    _, answer = await daemon.post("/tokenize", {"model": "fake", "messages": HI})
    assert (answer["count"], answer["tokens"], answer["token_strs"]) == (2, list(b"hi"), None)


async def test_detokenize_answers_to_both_names(daemon: RunningDaemon) -> None:
    tokens = [*"hé".encode(), END]
    assert await daemon.post("/detokenize", {"tokens": tokens}) == (200, {"content": "hé<end>", "prompt": "hé<end>"})
    assert (await daemon.post("/detokenize", {"tokens": []}))[1]["content"] == ""
    status, answer = await daemon.post("/detokenize", {"tokens": [9999]})
    assert status == 400
    assert "token 9999 is not in this model's vocabulary" in answer["error"]["message"]


async def test_template_is_applied(daemon: RunningDaemon) -> None:
    await daemon.create("mine", template="<{{ .System }}|{{ .Prompt }}>", system="S")
    assert await daemon.post("/apply-template", {"model": "mine", "messages": HI}) == (200, {"prompt": "<S|hi>"})


async def test_native_forms_go_there_and_back(daemon: RunningDaemon) -> None:
    for name in ("prompt", "content"):
        status, answer = await daemon.post("/api/tokenize", {"model": "fake", name: "hi"})
        assert (status, answer) == (200, {"tokens": list(b"hi")})
    _, answer = await daemon.post("/api/detokenize", {"model": "fake", "tokens": list(b"hi")})
    assert answer["content"] == "hi"


async def test_errors_have_the_form_of_the_path(daemon: RunningDaemon) -> None:
    status, answer = await daemon.post("/tokenize", {"content": "a", "model": "nosuch"})
    assert status == 404
    assert answer["error"] == {"code": 404, "message": "model 'nosuch' not found", "type": "not_found_error"}
    _, answer = await daemon.post("/api/tokenize", {"prompt": "a", "model": "nosuch"})
    assert answer["error"] == "model 'nosuch' not found"


def test_offsets_leave_out_the_blank_that_a_tokenizer_puts_before_a_text() -> None:
    rows = print_offsets(Rendered("hé no", 4, (1, 2, 3, 4), (b"", b" h\xc3", b"\xa9", b" no")))
    assert [(row["start"], row["stop"]) for row in rows] == [(0, 0), (0, 2), (2, 2), (2, 5)]


def test_piece_of_a_special_token_is_empty() -> None:
    assert print_pieces(Rendered("", 1, (1,), (b"",))) == {"tokens": [{"id": 1, "piece": ""}]}
