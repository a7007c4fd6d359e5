"""Making a model: what becomes of a chat template that the weights carry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corral.core.names import parse_name
from corral.core.progress import Progress
from corral.modelfile.create import CreateSpec, Creator
from corral.modelfile.model import Model, ModelResolver
from corral.registry.store import Store
from daemons import tiny_gguf
from models import smollm2_path

GOLDEN = Path(__file__).parents[1] / "golden" / "known_templates"
CHATML = (GOLDEN / "chatml.jinja").read_text(encoding="utf-8")
VICUNA = (GOLDEN / "vicuna.jinja").read_text(encoding="utf-8")


class Bench:
    """A store, and creates in it with what they reported."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.resolver = ModelResolver(store)
        self.statuses: list[str] = []

    def create(self, name: str, data: bytes | None, base: Model | None = None, **fields: Any) -> Model:
        self.statuses.clear()
        files = {} if data is None else {"m.gguf": self.store.blobs.add_bytes(data)}
        spec = CreateSpec(parse_name(name), files, **fields)
        Creator(self.store, self.resolver, self._report).create(spec, base)
        return self.resolver.resolve(self.store.get(spec.name, name))

    def _report(self, progress: Progress) -> None:
        self.statuses.append(progress.status)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    store = Store(tmp_path / "models")
    store.open()
    yield Bench(store)
    store.close()


def chatml_gguf(template: str = CHATML) -> bytes:
    return tiny_gguf(**{"tokenizer.chat_template": template})


def test_known_template_becomes_a_layer(bench: Bench) -> None:
    model = bench.create("a", chatml_gguf())
    assert model.template is not None
    assert "<|im_start|>{{ .Role }}" in model.template
    assert model.parameters == {}
    assert model.capabilities == ("completion",)
    kinds = [status.split(" sha256:")[0] for status in bench.statuses]
    assert kinds == [
        "parsing GGUF",
        "using existing layer",
        "using autodetected template chatml",
        "creating new layer",
        "writing manifest",
    ]


@pytest.mark.parametrize("template", ["{{ .Prompt }}", ""])
def test_template_that_is_given_comes_first(bench: Bench, template: str) -> None:
    model = bench.create("a", chatml_gguf(), template=template)
    assert model.template == (template or None)
    assert not any("autodetected" in status for status in bench.statuses)


def test_stop_strings_come_with_a_template_unless_others_are_given(bench: Bench) -> None:
    assert bench.create("a", chatml_gguf(VICUNA), parameters={"seed": 1}).parameters == {"stop": ["USER:"], "seed": 1}
    assert bench.create("b", chatml_gguf(VICUNA), parameters={"stop": ["Z"]}).parameters == {"stop": ["Z"]}


def test_child_inherits_the_template_or_takes_it_away(bench: Bench) -> None:
    parent = bench.create("parent", chatml_gguf())
    assert bench.create("child", None, parent, system="Be brief.").template == parent.template
    assert not any("autodetected" in status for status in bench.statuses)
    assert bench.create("native", None, parent, template="").template is None


@pytest.mark.parametrize("jinja", ["{{ <|im_start|><|im_end|>", "{% for %}", "<|im_start|><|im_end|>{{ 1 / 0 }}"])
def test_broken_template_does_not_stop_a_create(bench: Bench, jinja: str) -> None:
    assert bench.create("a", chatml_gguf(jinja)).template is None


def test_no_template_is_made_for_weights_without_one(bench: Bench) -> None:
    assert bench.create("a", tiny_gguf()).template is None


def test_template_with_its_own_system_prompt_stays_jinja(bench: Bench) -> None:
    model = bench.create("smol", smollm2_path().read_bytes())
    assert model.template is None
    assert not any("autodetected" in status for status in bench.statuses)
    assert "SmolLM" in (model.gguf.chat_template or "")
