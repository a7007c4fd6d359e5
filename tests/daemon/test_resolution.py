"""A call merged with its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from corral.core.errors import InvalidRequest, Unsupported
from corral.core.names import parse_name
from corral.core.types import (
    ChatPrompt,
    EmbedPair,
    EmbedRequest,
    GenerateRequest,
    Image,
    InfillPrompt,
    Message,
    TextPrompt,
    ToolPolicy,
    text_message,
)
from corral.daemon.dialects.endpoint import AnyCall, Call, EmbedCall
from corral.daemon.resolution import resolve
from corral.modelfile.gguf import GGUF
from corral.modelfile.model import Details, Model
from corral.registry.manifests import Descriptor, Manifest, StoredModel

CALL = Call(model="m", verb="chat", prompts=(ChatPrompt((text_message("user", "q"),)),))
TOOL = {"type": "function", "function": {"name": "f"}}
PNG = Image(b"png")
NAME = parse_name("m")


def make_model(**fields: Any) -> Model:
    manifest = Manifest(2, "", Descriptor("", "", 0))
    model = Model(
        name=NAME,
        stored=StoredModel(NAME, manifest, "", 0),
        config={},
        weights="w",
        weights_path=Path("w"),
        gguf=GGUF(3, {}, (), 32, 0, 0),
        adapters=(),
        projector=None,
        template=None,
        system=None,
        parameters={},
        messages=(),
        licenses=(),
        details=Details("", "gguf", "llama", ("llama",), "", ""),
        capabilities=("completion",),
    )
    return msgspec.structs.replace(model, **fields)


def request_of(call: AnyCall, model: Model) -> GenerateRequest:
    (request,) = resolve(call, model).requests
    assert isinstance(request, GenerateRequest)
    return request


def texts(call: Call, model: Model) -> list[tuple[str, str]]:
    request = request_of(call, model)
    assert isinstance(request.prompt, ChatPrompt)
    return [(message.role, message.text) for message in request.prompt.messages]


def test_request_wins_over_model_over_default() -> None:
    call = msgspec.structs.replace(CALL, options={"temperature": 0.0, "num_ctx": 512})
    resolved = resolve(call, make_model(parameters={"temperature": 0.5, "top_k": 7, "stop": ["a"], "num_ctx": 2048}))
    (request,) = resolved.requests
    assert isinstance(request, GenerateRequest)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.stop) == (0.0, 7, 0.9, ("a",))
    assert resolved.load.num_ctx == request.window == 512


def test_models_messages_and_system_come_first() -> None:
    model = make_model(system="S", messages=(text_message("user", "a"), text_message("assistant", "b")))
    assert texts(CALL, model) == [("system", "S"), ("user", "a"), ("assistant", "b"), ("user", "q")]


def test_system_message_of_the_request_replaces_the_models() -> None:
    prompt = ChatPrompt((text_message("system", "mine"), text_message("user", "q")))
    assert texts(msgspec.structs.replace(CALL, prompts=(prompt,)), make_model(system="S")) == [
        ("system", "mine"),
        ("user", "q"),
    ]


def test_system_field_replaces_every_system_text_of_the_model() -> None:
    model = make_model(system="S", messages=(text_message("system", "T"), text_message("user", "a")))
    call = msgspec.structs.replace(CALL, system="mine")
    assert texts(call, model) == [("system", "mine"), ("user", "a"), ("user", "q")]


def test_system_field_stands_before_a_system_message() -> None:
    prompt = ChatPrompt((text_message("system", "message"), text_message("user", "q")))
    call = msgspec.structs.replace(CALL, prompts=(prompt,), system="field")
    assert texts(call, make_model(system="S")) == [("system", "field"), ("system", "message"), ("user", "q")]


def test_context_stands_for_the_models_messages() -> None:
    prompt = ChatPrompt((text_message("user", "q"),), context=(1, 2))
    call = msgspec.structs.replace(CALL, prompts=(prompt,))
    assert texts(call, make_model(messages=(text_message("user", "a"),))) == [("user", "q")]


def test_raw_text_is_left_alone() -> None:
    call = msgspec.structs.replace(CALL, prompts=(TextPrompt("x"),))
    assert request_of(call, make_model(system="S")).prompt == TextPrompt("x")


def ask(**fields: Any) -> Call:
    return msgspec.structs.replace(CALL, prompts=(ChatPrompt((text_message("user", "q"),), **fields),))


@pytest.mark.parametrize(
    ("call", "capabilities", "message"),
    [
        (CALL, ("embedding",), '"m" does not support chat'),
        (ask(tools=(TOOL,)), ("completion",), "registry.ollama.ai/library/m:latest does not support tools"),
        (ask(think=True), ("completion",), '"m" does not support thinking'),
        (ask(think="low"), ("completion",), '"m" does not support thinking'),
        (
            msgspec.structs.replace(CALL, prompts=(ChatPrompt((Message("user", (PNG,)),)),)),
            ("completion",),
            '"m" does not support vision',
        ),
    ],
)
def test_what_cannot_be_done_is_refused(call: Call, capabilities: tuple[str, ...], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        resolve(call, make_model(capabilities=capabilities))


def test_forced_call_needs_no_template_that_knows_tools() -> None:
    call = msgspec.structs.replace(ask(tools=(TOOL,)), tool_policy=ToolPolicy(is_required=True))
    assert request_of(call, make_model()).tool_policy.is_required


@pytest.mark.parametrize(
    ("asked", "capabilities", "optional", "think"),
    [
        (None, ("completion", "thinking"), False, True),
        (False, ("completion", "thinking"), False, False),
        ("high", ("completion", "thinking"), False, "high"),
        (None, ("completion",), False, None),
        (False, ("completion",), False, None),
        (True, ("completion",), True, None),
    ],
)
def test_who_can_think_does_unless_told_otherwise(
    asked: bool | str | None, capabilities: tuple[str, ...], optional: bool, think: bool | str | None
) -> None:
    call = msgspec.structs.replace(ask(think=asked), think_optional=optional)
    prompt = request_of(call, make_model(capabilities=capabilities)).prompt
    assert isinstance(prompt, ChatPrompt)
    assert prompt.think == think


def test_each_choice_of_each_prompt_is_a_request_with_a_seed_of_its_own() -> None:
    call = msgspec.structs.replace(
        CALL, prompts=(TextPrompt("a"), TextPrompt("b")), num_choices=2, best_of=3, options={"seed": 7}
    )
    requests = [request for request in resolve(call, make_model()).requests if isinstance(request, GenerateRequest)]
    assert [request.prompt for request in requests] == [TextPrompt("a")] * 3 + [TextPrompt("b")] * 3
    assert [request.sampling.seed for request in requests] == [7, 8, 9] * 2
    # The best is told by log-probabilities.
    assert {request.top_logprobs for request in requests} == {0}


EMBED = EmbedCall(model="m", inputs=("a", "b"), query="q")


@pytest.mark.parametrize(
    ("capabilities", "inputs"),
    [
        (("embedding",), ("q", "a", "b")),
        (("completion",), ("q", "a", "b")),
        (("embedding", "rerank"), (EmbedPair("q", "a"), EmbedPair("q", "b"))),
    ],
)
def test_query_makes_pairs_for_a_rank_head_only(capabilities: tuple[str, ...], inputs: tuple[Any, ...]) -> None:
    (request,) = resolve(EMBED, make_model(capabilities=capabilities)).requests
    assert isinstance(request, EmbedRequest)
    assert request.inputs == inputs


def test_rank_head_makes_no_vectors() -> None:
    with pytest.raises(Unsupported, match="/v1/rerank"):
        resolve(msgspec.structs.replace(EMBED, query=None), make_model(capabilities=("embedding", "rerank")))


def test_template_of_the_request_replaces_the_stored_one() -> None:
    model = make_model(template="{{ .Prompt }}")
    for call, expected in ((CALL, "{{ .Prompt }}"), (msgspec.structs.replace(CALL, template="x"), "x")):
        assert request_of(call, model).template == expected


def test_template_of_the_request_decides_whether_infill_is_possible() -> None:
    call = msgspec.structs.replace(CALL, prompts=(InfillPrompt("a", "b"),))
    with pytest.raises(Unsupported, match=r"does not support insert.*\.Suffix"):
        resolve(call, make_model())
    assert request_of(msgspec.structs.replace(call, template="{{ .Suffix }}"), make_model()).template


def test_adapters_of_the_model_come_with_scales_of_model_or_request() -> None:
    model = make_model(adapters=(Path("a"), Path("b")), parameters={"lora_scales": [0.5, 1]})
    request = request_of(CALL, model)
    assert (request.adapters, request.sampling.lora_scales) == (("a", "b"), (0.5, 1.0))
    own = msgspec.structs.replace(CALL, options={"lora_scales": [2.0]})
    assert request_of(own, model).sampling.lora_scales == (2.0,)
    assert request_of(CALL, make_model()).sampling.lora_scales is None


def test_more_scales_than_adapters_are_refused() -> None:
    call = msgspec.structs.replace(CALL, options={"lora_scales": [1.0, 1.0]})
    with pytest.raises(InvalidRequest, match='lora_scales: 2 scales for the 1 adapters of "m"'):
        resolve(call, make_model(adapters=(Path("a"),)))


def test_embedding_with_adapters_is_refused_rather_than_made_without_them() -> None:
    with pytest.raises(Unsupported, match="LoRA adapters"):
        resolve(msgspec.structs.replace(EMBED, query=None), make_model(adapters=(Path("a"),)))
