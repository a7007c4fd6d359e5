"""Frames between daemon and runner: every kind survives the trip, however the stream is cut."""

from __future__ import annotations

import struct

import pytest
from corral.core.errors import InvalidRequest
from corral.core.events import (
    Candidate,
    Done,
    Failed,
    FinishReason,
    Rendered,
    TextDelta,
    ThinkingDelta,
    Timings,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from corral.core.types import (
    ChatPrompt,
    GenerateRequest,
    Image,
    LoadOptions,
    LoadSpec,
    Message,
    Sampling,
    Text,
    TextPrompt,
    Thinking,
    ToolCall,
    ToolResult,
)
from corral.core.wire import (
    MAX_FRAME_BYTES,
    Abort,
    Emit,
    FrameSplitter,
    Generate,
    Load,
    Loaded,
    LoadProgress,
    LoadRefused,
    Shutdown,
    ToDaemon,
    ToRunner,
    encode_frame,
    to_daemon_decoder,
    to_runner_decoder,
)

PARTS = (
    Text("é"),
    Image(b"\0\xff"),
    Thinking("hm"),
    ToolCall("1", "f", {"a": [1, None, {"b": 0.5}]}),
    ToolResult("1", "f", "ok"),
)
LOGPROBS = (TokenLogprob(Candidate("\ufffd", b"\xf0", -0.5), (Candidate("a", b"a", -1.0),)),)
EVENTS = [
    TextDelta("a", LOGPROBS),
    ThinkingDelta("b"),
    ToolCallDelta(0, "id", "f", '{"a":1}'),
    Rendered("<s>", 1),
    Done(FinishReason.LENGTH, Usage(3, 2, 1), Timings(5, 6), ("cut",), (1, 2)),
    Failed("internal", "x"),
]
TO_RUNNER: list[ToRunner] = [
    Load(LoadSpec("llamacpp", "/m", LoadOptions(num_ctx=512, use_mmap=False))),
    Generate(GenerateRequest(7, ChatPrompt((Message("user", PARTS),), (1, 2)), Sampling(stop=("a",)), window=9)),
    Generate(GenerateRequest(8, TextPrompt("raw"), top_logprobs=0, truncate=False)),
    Abort(7),
    Shutdown(),
]
TO_DAEMON: list[ToDaemon] = [
    LoadProgress(0.5),
    Loaded(4096, 2, 1 << 40, 0),
    LoadRefused("load_failed", "no memory"),
    Emit([(index, event) for index, event in enumerate(EVENTS)]),
]


@pytest.mark.parametrize("frame", TO_RUNNER, ids=lambda frame: type(frame).__name__)
def test_frame_when_sent_to_the_runner(frame: ToRunner) -> None:
    [body] = FrameSplitter().feed(encode_frame(frame))
    assert to_runner_decoder.decode(body) == frame


@pytest.mark.parametrize("frame", TO_DAEMON, ids=lambda frame: type(frame).__name__)
def test_frame_when_sent_to_the_daemon(frame: ToDaemon) -> None:
    [body] = FrameSplitter().feed(encode_frame(frame))
    assert to_daemon_decoder.decode(body) == frame


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 1 << 20])
def test_frames_when_the_stream_is_cut(size: int) -> None:
    stream = b"".join(map(encode_frame, TO_DAEMON))
    splitter = FrameSplitter()
    bodies = [body for at in range(0, len(stream), size) for body in splitter.feed(stream[at : at + size])]
    assert [to_daemon_decoder.decode(body) for body in bodies] == TO_DAEMON


def test_frame_when_it_is_not_whole() -> None:
    splitter = FrameSplitter()
    data = encode_frame(Abort(1))
    assert list(splitter.feed(data[:-1])) == []
    assert len(list(splitter.feed(data[-1:]))) == 1
    assert list(splitter.feed(b"")) == []


def test_frame_when_it_is_empty() -> None:
    assert list(FrameSplitter().feed(struct.pack("<I", 0))) == [b""]


def test_error_when_a_length_is_absurd() -> None:
    with pytest.raises(ValueError, match="frame of"):
        list(FrameSplitter().feed(struct.pack("<I", MAX_FRAME_BYTES + 1)))


def test_error_when_a_number_is_beyond_64_bits() -> None:
    call = ToolCall("1", "f", {"a": 1 << 64})
    with pytest.raises(InvalidRequest, match="64 bits"):
        encode_frame(Generate(GenerateRequest(1, ChatPrompt((Message("assistant", (call,)),)))))
