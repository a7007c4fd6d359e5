"""Images through a tiny random projector on real weights: what libmtmd's own loop gives, in any crowd, and reused."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from corral.backends.llamacpp.binding.context import Context
from corral.backends.llamacpp.binding.projector import Chunk, Projector
from corral.backends.llamacpp.engine import LlamaCppEngine, load_engine
from corral.backends.llamacpp.vision import PictureReader
from corral.backends.pipeline import Pipeline
from corral.backends.protocol import Engine, EngineRequest, PicturePart, StepOutput
from corral.core.errors import InvalidRequest, LoadFailed
from corral.core.types import ChatPrompt, GenerateRequest, Image, LoadOptions, LoadSpec, Message, Sampling, Text
from models import smollm2_path
from vision_files import NUM_IMAGE_TOKENS, make_png, write_projector

RED, BLUE = make_png(255, 0, 0), make_png(0, 0, 255)
QUESTION = "What do you see?"


@pytest.fixture(scope="module")
def projector(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_projector(tmp_path_factory.mktemp("vision") / "projector.gguf"))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    spec = LoadSpec("llamacpp", str(smollm2_path()), LoadOptions(num_ctx=1024, num_parallel=4))
    engine = load_engine(spec, lambda fraction: None)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def pipeline(engine: Engine) -> Pipeline:
    return Pipeline(engine)


def make_request(pipeline: Pipeline, projector: str, *messages: Message, request_id: int = 1) -> EngineRequest:
    """What the engine gets for a chat."""
    sampling = Sampling(temperature=0)
    request = GenerateRequest(request_id, ChatPrompt(messages), sampling, projector=projector)
    prompt = pipeline.prepare(request).prompt  # type: ignore[union-attr]
    return EngineRequest(request_id, prompt.tokens, sampling, 16, 1024, top_logprobs=10, pictures=prompt.pictures)


def saying(*parts: Text | Image) -> Message:
    return Message("user", parts)


def run(engine: Engine, *requests: EngineRequest) -> dict[int, list[StepOutput]]:
    for request in requests:
        engine.add(request)
    found: defaultdict[int, list[StepOutput]] = defaultdict(list)
    while engine.has_work:
        for output in engine.step():
            found[output.id].append(output)
    return found


def test_picture_stands_where_it_was_sent(pipeline: Pipeline, projector: str, engine: Engine) -> None:
    request = make_request(
        pipeline, projector, saying(Text("Look: "), Image(RED), Text("and "), Image(BLUE), Text("!"))
    )
    first, second = request.pictures
    assert len(first.part.stand_ins) == first.part.num_cells == NUM_IMAGE_TOKENS
    assert request.tokens[first.start : first.end] == first.part.stand_ins
    pieces = [request.tokens[: first.start], request.tokens[first.end : second.start], request.tokens[second.end :]]
    before, between, after = (b"".join(map(engine.tokenizer.piece, piece)) for piece in pieces)
    assert before.endswith(b"Look: ")
    assert between == b"and "
    assert after.startswith(b"!")
    assert not set(first.part.stand_ins) & set(second.part.stand_ins)


def test_text_cannot_pass_for_a_picture(pipeline: Pipeline, projector: str) -> None:
    request = make_request(pipeline, projector, saying(Text("\ufdd20\ufdd2 [img]"), Image(RED), Text(QUESTION)))
    assert len(request.pictures) == 1


def test_same_picture_is_the_same_and_another_is_not(pipeline: Pipeline, projector: str, engine: Engine) -> None:
    def likeliest(*parts: Text | Image) -> list[float]:
        outputs = run(engine, make_request(pipeline, projector, saying(*parts, Text(QUESTION))))[1]
        return [logprob for _, logprob in outputs[0].top]

    red, blue = likeliest(Image(RED)), likeliest(Image(BLUE))
    assert blue != pytest.approx(red, abs=0.01)
    assert likeliest() != pytest.approx(red, abs=0.01)
    assert likeliest(Image(RED)) == red
    assert likeliest(Image(RED), Image(BLUE)) != pytest.approx(likeliest(Image(BLUE), Image(RED)), abs=0.01)


def test_logits_are_those_of_the_librarys_own_loop(pipeline: Pipeline, projector: str, engine: Engine) -> None:
    from llama_cpp import llama_cpp as lib
    from llama_cpp import mtmd_cpp as mtmd

    assert isinstance(engine, LlamaCppEngine)
    request = make_request(pipeline, projector, saying(Image(RED), Text(QUESTION)))
    ours = run(engine, request)[1][0]
    (placed,) = request.pictures
    texts = [request.tokens[: placed.start], request.tokens[placed.end :]]
    before, after = (
        b"".join(engine.tokenizer.piece(token) or engine.tokenizer.special_text(token).encode() for token in tokens)
        for tokens in texts
    )
    model, reader = engine._model, engine._reader
    assert reader is not None
    context = Context(model, 512, 1, LoadOptions(), 2)
    data = before + b"<__media__>" + after
    text = mtmd.mtmd_input_text(data, len(data), False, True)
    buffer = (ctypes.c_uint8 * len(RED)).from_buffer_copy(RED)
    pointer = reader._projector._pointer
    bitmap = mtmd.mtmd_helper_bitmap_init_from_buf(pointer, buffer, len(RED), False)
    chunks = mtmd.mtmd_input_chunks_init()
    assert mtmd.mtmd_tokenize(pointer, chunks, ctypes.byref(text), (ctypes.c_void_p * 1)(bitmap), 1) == 0
    end = lib.llama_pos(0)
    assert mtmd.mtmd_helper_eval_chunks(pointer, context.pointer, chunks, 0, 0, 512, True, ctypes.byref(end)) == 0
    logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(context.pointer, -1), (model.num_vocab,)).astype(float)
    logprobs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    assert end.value == len(request.tokens)
    assert ours.token == int(logits.argmax())
    assert [logprob for _, logprob in ours.top] == pytest.approx([logprobs[token] for token, _ in ours.top], abs=1e-3)
    mtmd.mtmd_input_chunks_free(chunks)
    mtmd.mtmd_bitmap_free(bitmap)
    context.close()


def test_crowd_sees_what_each_sees_alone(pipeline: Pipeline, projector: str, engine: Engine) -> None:
    chats = [
        saying(Image(RED), Text(QUESTION)),
        saying(Text("Tell me a story. " * 20)),
        saying(Text("A long question. " * 15), Image(BLUE), Text(QUESTION)),
    ]
    requests = [make_request(pipeline, projector, chat, request_id=number) for number, chat in enumerate(chats)]
    alone = [run(engine, request)[request.id] for request in requests]
    crowd = run(engine, *requests)
    for number, expected in enumerate(alone):
        assert [output.token for output in crowd[number]] == [output.token for output in expected]


def test_next_turn_neither_encodes_nor_evaluates_the_picture_again(
    pipeline: Pipeline, projector: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = make_png(9, 99, 9)
    first = saying(Image(picture), Text(QUESTION + " Take your time. " * 20))
    request = make_request(pipeline, projector, first)
    answer = b"".join(engine.tokenizer.piece(output.token) for output in run(engine, request)[1] if output.token)
    calls: list[str] = []
    monkeypatch.setattr(Projector, "encode", lambda self, chunk: calls.append("encode"))
    monkeypatch.setattr(Projector, "evaluate", lambda self, *arguments: calls.append("evaluate"))
    said = Message("assistant", (Text(answer.decode()),))
    outputs = run(engine, make_request(pipeline, projector, first, said, saying(Text("And now?"))))[1]
    assert outputs[0].num_cached >= request.pictures[0].end
    assert not calls


def test_reuse_never_begins_within_a_picture(pipeline: Pipeline, projector: str, engine: Engine) -> None:
    # The picture lies over the border of a block, and what follows it differs.
    filler = "word " * 44
    texts = [QUESTION, "Something else entirely, and longer than before."]
    for text in texts:
        request = make_request(pipeline, projector, saying(Text(filler), Image(RED), Text(text)))
        (placed,) = request.pictures
        cached = run(engine, request)[1][0].num_cached
        assert not placed.start < cached < placed.end


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n broken", RED[:40], b"RIFF0000WEBP", b""])
def test_file_that_is_no_picture_is_refused(pipeline: Pipeline, projector: str, data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="an image cannot be read"):
        make_request(pipeline, projector, saying(Image(data), Text(QUESTION)))


def test_projector_of_another_model_is_refused_with_the_reason(engine: Engine, tmp_path: Path) -> None:
    assert isinstance(engine, LlamaCppEngine)
    other = write_projector(tmp_path / "other.gguf", width=512)
    with pytest.raises(LoadFailed, match="cannot load the model's projector: .*(512|mismatch)") as caught:  # noqa: RUF043
        Projector(engine._model, str(other), 2)
    assert str(tmp_path) not in caught.value.message
    with pytest.raises(LoadFailed, match="cannot load the model's projector"):
        Projector(engine._model, str(smollm2_path()), 2)


def test_encodings_are_kept_within_bounds(engine: Engine, projector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(engine, LlamaCppEngine)
    reader = PictureReader(engine._model, projector, 2)
    parts = [part for shade in range(4) for part in reader.read(make_png(shade, 0, 0)).parts]
    assert all(isinstance(part, PicturePart) and isinstance(part.handle, Chunk) for part in parts)
    one = reader._encode(parts[0]).nbytes  # type: ignore[arg-type]
    monkeypatch.setattr("corral.backends.llamacpp.vision._CACHED_BYTES", 2 * one)
    for part in parts:
        reader._encode(part)  # type: ignore[arg-type]
    assert len(reader._encoded) == 2
    assert reader._num_bytes == 2 * one
    reader.close()
