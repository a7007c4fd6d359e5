"""Text to tokens and back, and chats to prompts, in the forms of llama.cpp, TGI, vLLM and our own.

/tokenize and /detokenize are paths of several servers; the fields of a body tell whose form it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest
from ...core.events import Rendered
from ...core.options import check_options
from ...core.types import ChatPrompt, Prompt, TextPrompt, TokensPrompt
from .bodies import Body
from .endpoint import Call, Endpoint
from .fields import model_name
from .llamacpp_encoder import encode_error
from .ollama_encoder import encode_error as encode_native_error
from .openai_bodies import ChatMessage
from .openai_messages import read_messages
from .tokens_encoder import (
    RenderedEncoder,
    print_content,
    print_count,
    print_offsets,
    print_pieces,
    print_prompt,
    print_texts,
    print_tokens,
)
from .tools import check_tools, choose_tools

Token = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class ModelFields(Body, frozen=True):
    """Which model, and how it is loaded where it is not yet. No model means the one that is loaded, or the default."""

    model: str | None = None
    keep_alive: Any = None
    options: dict[str, Any] | None = None


class ChatFields(ModelFields, frozen=True):
    """A conversation for the model's template."""

    messages: list[ChatMessage] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


class TokenizeBody(ChatFields, frozen=True):
    """POST /tokenize. llama.cpp's form has `content`, TGI's `inputs`, vLLM's `prompt` or `messages`."""

    content: str | None = None
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None
    inputs: str | None = None
    prompt: str | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None


class DetokenizeBody(ModelFields, frozen=True):
    """POST /detokenize and /api/detokenize."""

    tokens: list[Token] | None = None


class NativeTokenizeBody(ModelFields, frozen=True):
    """POST /api/tokenize. `content` is another name of `prompt`. Nothing is put before its tokens."""

    prompt: str | None = None
    content: str | None = None


def parse_tokenize(body: TokenizeBody) -> Call:
    """A body of /tokenize. Errors: InvalidRequest for fields of two forms."""
    given = [name for name in ("content", "inputs", "prompt", "messages") if getattr(body, name) is not None]
    if len(given) != 1:
        found = f"not {' and '.join(given)} together" if given else "and it has none of them"
        raise InvalidRequest(f"the body must have one of content, inputs, prompt and messages, {found}")
    if body.content is not None:
        text = TextPrompt(body.content, body.parse_special is not False, body.add_special is True)
        return _render(body, text, print_pieces if body.with_pieces else print_tokens)
    whole = body.add_special_tokens is not False
    if body.inputs is not None:
        return _render(body, TextPrompt(body.inputs, add_special=whole), print_offsets)
    printer = print_texts if body.return_token_strs else print_count
    if body.prompt is not None:
        return _render(body, TextPrompt(body.prompt, add_special=whole), printer)
    return _render(body, _chat_prompt(body), printer)


def parse_detokenize(body: DetokenizeBody) -> Call:
    """A body of /detokenize. Errors: InvalidRequest where tokens are missing."""
    if body.tokens is None:
        raise InvalidRequest("tokens is required: a list of token numbers")
    return _render(body, TokensPrompt(tuple(body.tokens)), print_content)


def parse_apply_template(body: ChatFields) -> Call:
    """A body of /apply-template. Errors: InvalidRequest names the field."""
    return _render(body, _chat_prompt(body), print_prompt)


def parse_native_tokenize(body: NativeTokenizeBody) -> Call:
    """A body of /api/tokenize. Errors: InvalidRequest where there is no text or no model."""
    text = body.content if body.prompt is None else body.prompt
    if text is None:
        raise InvalidRequest("prompt is required: the text whose tokens are wanted")
    model_name(body.model)
    return _render(body, TextPrompt(text, add_special=False), print_tokens)


def parse_native_detokenize(body: DetokenizeBody) -> Call:
    """A body of /api/detokenize. Errors: InvalidRequest where tokens or the model are missing."""
    model_name(body.model)
    return parse_detokenize(body)


def _render(body: ModelFields, prompt: Prompt, printer: Callable[[Rendered], Any]) -> Call:
    options, warnings = check_options(body.options or {})
    # An engine has nothing to do with nothing: the model is loaded, and the answer is as empty.
    is_empty = prompt in (TokensPrompt(()), TextPrompt("", True, False), TextPrompt("", False, False))
    return Call(
        model=(body.model or "").strip(),
        verb="tokenize",
        prompts=() if is_empty else (prompt,),
        options=options,
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=False,
        render_only=True,
        want_context=True,
        warnings=tuple(warnings),
        details=printer,
    )


def _chat_prompt(body: ChatFields) -> ChatPrompt:
    if not body.messages:
        raise InvalidRequest("messages is required: a list of messages in OpenAI's form")
    tools, _ = choose_tools(check_tools(body.tools), body.tool_choice, None)
    return ChatPrompt(
        read_messages(body.messages),
        tools=tools,
        variables=body.chat_template_kwargs or {},
        continue_last=body.continue_final_message is True or body.add_generation_prompt is False,
    )


def _endpoint(path: str, body: type[Body], parse: Any, error: Any, summary: str) -> Endpoint:
    return Endpoint("POST", path, body, parse, RenderedEncoder, error, summary)


ENDPOINTS = (
    _endpoint("/tokenize", TokenizeBody, parse_tokenize, encode_error, "Tokens of a text, in the form of the body"),
    _endpoint("/detokenize", DetokenizeBody, parse_detokenize, encode_error, "The text of tokens"),
    _endpoint("/apply-template", ChatFields, parse_apply_template, encode_error, "A conversation as its prompt"),
    _endpoint("/api/tokenize", NativeTokenizeBody, parse_native_tokenize, encode_native_error, "Tokens of a text"),
    _endpoint("/api/detokenize", DetokenizeBody, parse_native_detokenize, encode_native_error, "The text of tokens"),
)
