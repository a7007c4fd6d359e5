"""A call merged with its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from corral.core.errors import Unsupported
from corral.core.names import parse_name
from corral.core.types import ChatPrompt, InfillPrompt, TextPrompt, text_message
from corral.daemon.dialects.endpoint import Call
from corral.daemon.resolution import resolve
from corral.modelfile.gguf import GGUF
from corral.modelfile.model import Details, Model
from corral.registry.manifests import Descriptor, Manifest, StoredModel

CALL = Call(model="m", verb="chat", prompt=ChatPrompt((text_message("user", "q"),)))
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
        template=None,
        system=None,
        parameters={},
        messages=(),
        licenses=(),
        details=Details("", "gguf", "llama", ("llama",), "", ""),
        capabilities=("completion",),
    )
    return msgspec.structs.replace(model, **fields)


def texts(call: Call, model: Model) -> list[tuple[str, str]]:
    request = resolve(call, model).request
    assert request is not None
    assert isinstance(request.prompt, ChatPrompt)
    return [(message.role, message.text) for message in request.prompt.messages]


def test_request_wins_over_model_over_default() -> None:
    call = msgspec.structs.replace(CALL, options={"temperature": 0.0, "num_ctx": 512})
    resolved = resolve(call, make_model(parameters={"temperature": 0.5, "top_k": 7, "stop": ["a"], "num_ctx": 2048}))
    assert resolved.request is not None
    sampling = resolved.request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.stop) == (0.0, 7, 0.9, ("a",))
    assert resolved.load.num_ctx == resolved.request.window == 512


def test_models_messages_and_system_come_first() -> None:
    model = make_model(system="S", messages=(text_message("user", "a"), text_message("assistant", "b")))
    assert texts(CALL, model) == [("system", "S"), ("user", "a"), ("assistant", "b"), ("user", "q")]


def test_system_message_of_the_request_replaces_the_models() -> None:
    prompt = ChatPrompt((text_message("system", "mine"), text_message("user", "q")))
    assert texts(msgspec.structs.replace(CALL, prompt=prompt), make_model(system="S")) == [
        ("system", "mine"),
        ("user", "q"),
    ]


def test_system_field_replaces_every_system_text_of_the_model() -> None:
    model = make_model(system="S", messages=(text_message("system", "T"), text_message("user", "a")))
    call = msgspec.structs.replace(CALL, system="mine")
    assert texts(call, model) == [("system", "mine"), ("user", "a"), ("user", "q")]


def test_context_stands_for_the_models_messages() -> None:
    prompt = ChatPrompt((text_message("user", "q"),), context=(1, 2))
    call = msgspec.structs.replace(CALL, prompt=prompt)
    assert texts(call, make_model(messages=(text_message("user", "a"),))) == [("user", "q")]


def test_raw_text_is_left_alone() -> None:
    resolved = resolve(msgspec.structs.replace(CALL, prompt=TextPrompt("x")), make_model(system="S"))
    assert resolved.request is not None
    assert resolved.request.prompt == TextPrompt("x")


@pytest.mark.parametrize(
    ("capabilities", "needs", "message"),
    [
        (("embedding",), (), '"m" does not support chat'),
        (("completion",), ("tools",), "registry.ollama.ai/library/m:latest does not support tools"),
        (("completion",), ("thinking",), '"m" does not support thinking'),
        (("completion", "tools"), ("tools",), "cannot parse tool calls yet"),
    ],
)
def test_what_cannot_be_done_is_refused(capabilities: tuple[str, ...], needs: tuple[str, ...], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        resolve(msgspec.structs.replace(CALL, needs=needs), make_model(capabilities=capabilities))


def test_template_of_the_request_replaces_the_stored_one() -> None:
    model = make_model(template="{{ .Prompt }}")
    for call, expected in ((CALL, "{{ .Prompt }}"), (msgspec.structs.replace(CALL, template="x"), "x")):
        request = resolve(call, model).request
        assert request is not None
        assert request.template == expected


def test_template_of_the_request_decides_whether_infill_is_possible() -> None:
    call = msgspec.structs.replace(CALL, prompt=InfillPrompt("a", "b"), needs=("insert",))
    with pytest.raises(Unsupported, match=r"does not support insert.*\.Suffix"):
        resolve(call, make_model())
    assert resolve(msgspec.structs.replace(call, template="{{ .Suffix }}"), make_model()).request is not None


def test_model_with_adapters_is_refused_rather_than_run_without_them() -> None:
    with pytest.raises(Unsupported, match="LoRA adapters"):
        resolve(CALL, make_model(adapters=("sha256:a",)))
