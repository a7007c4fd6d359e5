"""Which Jinja templates count as known: those that render as a shipped Go template does, to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corral.modelfile.autodetect import detect_template, find_template
from corral.modelfile.gguf import read_gguf
from gguf_files import F32, build_gguf
from models import smollm2_path

GOLDEN = Path(__file__).parents[1] / "golden" / "known_templates"
NEAR = sorted((GOLDEN / "near").glob("*.jinja"))
CHATML = (GOLDEN / "chatml.jinja").read_text(encoding="utf-8")
ZEPHYR = (GOLDEN / "zephyr.jinja").read_text(encoding="utf-8")
MISTRAL = (GOLDEN / "mistral-instruct.jinja").read_text(encoding="utf-8")
SIGNS = "<|im_start|><|im_end|>"


def detect(folder: Path, jinja: str, **tokenizer: Any) -> str | None:
    metadata = {
        "general.architecture": "llama",
        "tokenizer.chat_template": jinja,
        **{f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()},
    }
    path = folder / "m.gguf"
    path.write_bytes(build_gguf(metadata, {"t": ((8,), F32, bytes(32))}))
    found = detect_template(read_gguf(path), path)
    return found.name if found else None


@pytest.mark.parametrize("path", NEAR, ids=lambda path: path.stem)
def test_template_that_only_looks_like_a_known_one_stays_jinja(path: Path) -> None:
    jinja = path.read_text(encoding="utf-8")
    assert find_template(jinja, "<s>", "</s>") is None


def test_known_template_in_one_line_is_the_same() -> None:
    jinja = (
        "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n'}}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )
    found = find_template(jinja, "", "<|im_end|>")
    assert found is not None
    assert (found.name, found.stop) == ("chatml", ())


def test_stop_strings_come_where_turns_are_plain_text() -> None:
    found = find_template((GOLDEN / "vicuna.jinja").read_text(encoding="utf-8"), "<s>", "</s>")
    assert found is not None
    assert found.stop == ("USER:",)


@pytest.mark.parametrize(
    ("start", "adds_bos", "is_known"),
    [
        ("{{- bos_token -}}", True, True),
        ("", True, True),
        ("", False, True),
        ("{{- bos_token -}}", False, False),
        ("{{- '<s> ' -}}", True, False),
        ("{{- '<bos>' -}}", True, False),
    ],
)
def test_start_is_put_aside_only_where_the_tokenizer_adds_it(start: str, adds_bos: bool, is_known: bool) -> None:
    assert (find_template(start + CHATML, "<s>", "</s>", adds_bos) is not None) is is_known


def test_end_text_must_be_the_familys() -> None:
    assert find_template(ZEPHYR, "<s>", "</s>") is not None
    assert find_template(ZEPHYR, "<s>", "<|endoftext|>") is None


@pytest.mark.parametrize(
    "jinja",
    [
        "",
        SIGNS,
        f"{{{{ {SIGNS}",
        f"{SIGNS}{{{{ 1 / 0 }}}}",
        f"{SIGNS}{{{{ raise_exception('never') }}}}",
        f"{SIGNS}{{% macro f() %}}{{{{ f() }}}}{{% endmacro %}}{{{{ f() }}}}",
        f"{SIGNS}{{{{ 'a' * 99999999 }}}}",
        f"{SIGNS}{{% for a in range(99999) %}}{{% for b in range(99999) %}}{{% endfor %}}{{% endfor %}}",
        f"{SIGNS}{{{{ messages.__class__.__mro__ }}}}",
        CHATML + "{#" + " " * (1 << 15) + "#}",
    ],
    ids=["empty", "text", "broken", "fails", "refuses", "recursion", "growth", "loops", "attributes", "long"],
)
def test_template_that_is_no_use_is_not_known(jinja: str) -> None:
    assert find_template(jinja, "<s>", "</s>") is None


def test_detect_reads_the_texts_of_tokens(tmp_path: Path) -> None:
    few, many = ["<unk>", "<s>", "</s>"], ["<unk>", "<s>", "</s>", *("x" * size for size in range(500))]
    for tokens in (few, many, many[::-1]):
        places = {"bos_token_id": tokens.index("<s>"), "eos_token_id": tokens.index("</s>")}
        assert detect(tmp_path, MISTRAL, tokens=tokens, add_bos_token=True, **places) == "mistral-instruct"
        assert detect(tmp_path, MISTRAL, tokens=tokens, add_bos_token=False, **places) is None
        places = {"bos_token_id": tokens.index("<s>"), "eos_token_id": tokens.index("<unk>")}
        assert detect(tmp_path, MISTRAL, tokens=tokens, add_bos_token=True, **places) is None


@pytest.mark.parametrize("token", [-1, 3, 1 << 31, 1 << 40, "1", True])
def test_detect_when_a_token_is_not_in_the_vocabulary(tmp_path: Path, token: Any) -> None:
    assert detect(tmp_path, MISTRAL, tokens=["<unk>", "<s>", "</s>"], eos_token_id=token, bos_token_id=1) is None
    assert detect(tmp_path, CHATML, tokens=["<unk>", "<s>", "</s>"], eos_token_id=token) == "chatml"


@pytest.mark.parametrize(
    ("fields", "is_known"),
    [
        ({"model": "llama"}, True),
        ({"model": "gpt2", "pre": "llama-bpe"}, True),
        ({"model": "gpt2", "pre": "qwen2"}, False),
        ({"model": "llama", "add_bos_token": False}, False),
        ({"model": "gpt2", "add_bos_token": True}, True),
    ],
)
def test_detect_knows_which_tokenizers_add_a_start(tmp_path: Path, fields: dict[str, Any], is_known: bool) -> None:
    found = detect(tmp_path, "{{- bos_token -}}" + CHATML, tokens=["<s>"], bos_token_id=0, **fields)
    assert (found == "chatml") is is_known


def test_detect_when_tokens_are_no_texts(tmp_path: Path) -> None:
    assert detect(tmp_path, MISTRAL, tokens=[1, 2, 3], eos_token_id=2) is None
    assert detect(tmp_path, MISTRAL, tokens=list(range(1000)), eos_token_id=2) is None


def test_template_with_a_system_prompt_of_its_own_stays_jinja() -> None:
    assert detect_template(read_gguf(smollm2_path()), smollm2_path()) is None


def test_no_template_is_guessed_where_the_file_has_none(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(build_gguf({"general.architecture": "llama"}, {"t": ((8,), F32, bytes(32))}))
    assert detect_template(read_gguf(path), path) is None
