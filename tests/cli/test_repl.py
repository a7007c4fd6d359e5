"""The chat, with a scripted reader in place of the terminal, and once on a real pseudo-terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from cli_server import ScriptedDaemon, Status
from corral.cli.chat import ChatSession
from corral.cli.client import Client
from corral.cli.repl import EXIT_HINT, Repl
from corral.cli.repl_commands import COMMANDS, SET, SHOW, run_command
from corral.core.errors import CorralError

LOADED = {"done": True, "done_reason": "load", "message": {"role": "assistant", "content": ""}}


class InterruptedAt(io.StringIO):
    """Output during which the person presses Ctrl-C as soon as some text appears."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def write(self, text: str) -> int:
        count = super().write(text)
        if text == self._text:
            raise KeyboardInterrupt
        return count


class ScriptedTerminal:
    """Gives its entries one by one, raises those that are exceptions, then ends as Ctrl-D does."""

    def __init__(self, *entries: str | type[BaseException], out: io.StringIO | None = None) -> None:
        self.out = out or io.StringIO()
        self.keep_history = True
        self.prompts: list[str] = []
        self._entries = list(entries)

    def read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self._entries:
            raise EOFError
        entry = self._entries.pop(0)
        if isinstance(entry, str):
            return entry
        raise entry


def _reply(*texts: str, **final: object) -> list[dict[str, object]]:
    lines = [{"message": {"role": "assistant", "content": text}, "done": False} for text in texts]
    return [*lines, {"message": {"role": "assistant", "content": ""}, "done": True, **final}]


@pytest.fixture
def chat(daemon: ScriptedDaemon, socket_path) -> Callable[..., Repl]:
    """Runs a chat over some entries; the daemon answers "Hello" and then "Again", unless the test says otherwise."""
    daemon.on("POST", "/api/chat", LOADED, _reply("Hel", "lo"), _reply("Again"))

    def run(*entries: str | type[BaseException], out: io.StringIO | None = None, **fields: object) -> Repl:
        verbose = bool(fields.pop("verbose", False))
        repl = Repl(ChatSession(Client(socket_path), "m", **fields), ScriptedTerminal(*entries, out=out), verbose)
        repl.run()
        return repl

    return run


def _written(repl: Repl) -> str:
    return repl.terminal.out.getvalue()


def test_model_is_loaded_with_an_empty_chat_at_the_start(chat, daemon) -> None:
    repl = chat(keep_alive="1h", think=False)
    assert daemon.sent("/api/chat") == [
        {"model": "m", "messages": [], "stream": False, "keep_alive": "1h", "think": False}
    ]
    assert _written(repl) == "\n"


def test_absent_model_ends_the_chat_before_it_starts(chat, daemon) -> None:
    daemon.on("POST", "/api/chat", Status(404, {"error": "model 'm' not found"}))
    with pytest.raises(CorralError, match="not found"):
        chat("hi")


def test_turns_go_with_their_whole_history(chat, daemon) -> None:
    repl = chat("hi", "", "and?")
    assert daemon.sent("/api/chat")[2]["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "and?"},
    ]
    assert _written(repl) == "Hello\n\nAgain\n\n\n"


def test_system_text_stands_before_the_history(chat, daemon) -> None:
    chat("hi", "/set system Be brief", "and?", system="Be kind")
    _, first, second = daemon.sent("/api/chat")
    assert first["messages"][0] == {"role": "system", "content": "Be kind"}
    assert second["messages"][0] == {"role": "system", "content": "Be brief"}
    assert len(second["messages"]) == 4


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (['"""one', "two", 'three"""'], "one\ntwo\nthree"),
        (['"""', "  two", '"""'], "  two"),
        (['"""one line"""'], "one line"),
        (["pasted\n\ntext"], "pasted\n\ntext"),
        (["/set parameter seed 1\npasted text"], "/set parameter seed 1\npasted text"),
        (['"""/bye', '"""'], "/bye"),
        (["/usr/bin/env is what?"], "/usr/bin/env is what?"),
    ],
)
def test_message_of_several_lines_is_kept_together(chat, daemon, entries: list[str], message: str) -> None:
    repl = chat(*entries)
    assert daemon.sent("/api/chat")[1]["messages"] == [{"role": "user", "content": message}]
    assert repl.terminal.prompts == [">>> ", *["... "] * (len(entries) - 1), ">>> "]


def test_system_text_may_have_several_lines(chat) -> None:
    assert chat('/set system """one', 'two"""').session.system == "one\ntwo"


def test_interrupt_at_the_prompt_says_how_to_leave_and_drops_the_lines(chat, daemon) -> None:
    repl = chat(KeyboardInterrupt, '"""one', KeyboardInterrupt, "hi")
    assert _written(repl).count(EXIT_HINT) == 2
    assert daemon.sent("/api/chat")[1]["messages"] == [{"role": "user", "content": "hi"}]


def test_interrupt_during_an_answer_keeps_what_came(chat, daemon) -> None:
    repl = chat("hi", "and?", out=InterruptedAt("Hel"))
    assert daemon.sent("/api/chat")[2]["messages"][:2] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hel"},
    ]
    assert _written(repl) == "Hel\n\nAgain\n\n\n"


def test_failed_answer_is_shown_and_not_remembered(chat, daemon) -> None:
    daemon.on("POST", "/api/chat", LOADED, Status(500, {"error": "out of memory"}), _reply("Hello"))
    repl = chat("hi", "hi")
    assert daemon.sent("/api/chat")[2]["messages"] == [{"role": "user", "content": "hi"}]
    assert _written(repl).startswith("Error: out of memory\nHello\n")


def test_thinking_is_part_of_the_history(chat, daemon) -> None:
    thought = {"message": {"role": "assistant", "content": "", "thinking": "hm"}}
    daemon.on("POST", "/api/chat", LOADED, [thought, *_reply("Hello")], _reply("Again"))
    repl = chat("hi", "and?")
    assert daemon.sent("/api/chat")[2]["messages"][1] == {"role": "assistant", "content": "Hello", "thinking": "hm"}
    assert _written(repl).startswith("Thinking...\nhm\n...done thinking.\n\nHello\n")


def test_warnings_and_statistics_follow_an_answer(chat, daemon) -> None:
    final = {"warnings": ["oldest message was dropped"], "eval_count": 2, "eval_duration": 1_000_000_000}
    daemon.on("POST", "/api/chat", LOADED, _reply("Hello", **final))
    text = _written(chat("/set verbose", "hi", "/set quiet", "and?"))
    statistics = "warning: oldest message was dropped\neval count:           2 token(s)\n"
    assert text.count(statistics) == 1
    assert text.count("warning: ") == 2


def test_parameters_are_typed_and_sent(chat, daemon) -> None:
    repl = chat("/set parameter temperature 0", '/set parameter stop "a b" c', "/set parameter seed x", "hi")
    assert daemon.sent("/api/chat")[1]["options"] == {"temperature": 0.0, "stop": ["a b", "c"]}
    assert "Seed takes int, not 'x'\n" in _written(repl)


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        ("/sho", "Unknown command /sho: did you mean /show?\n"),
        ("/set parmeter x 1", "Unknown command /set parmeter: did you mean /set parameter?\n"),
        ("/zzz", "Unknown command /zzz: /? lists the commands\n"),
        ("/set parameter temprature 1", "Unknown parameter 'temprature'; did you mean 'temperature'?\n"),
        ("/set parameter tfs_z 1", "Parameter 'tfs_z' has no effect\n"),
        ("/set parameter seed", "Usage: /set parameter NAME VALUE\n"),
        ("/load", "Usage: /load MODEL\n"),
        ("/set format yaml", "Usage: /set format json\n"),
        ("/bye now", "/bye takes nothing after it\n"),
    ],
)
def test_wrong_command_is_explained(chat, daemon, entry: str, answer: str) -> None:
    assert _written(chat(entry)) == f"{answer}\n"
    assert len(daemon.sent("/api/chat")) == 1


def test_format_is_set_and_unset(chat, daemon) -> None:
    chat("/set format json", "hi", "/set noformat", "and?")
    assert [body.get("format") for body in daemon.sent("/api/chat")] == [None, "json", None]


def test_history_file_is_switched(chat) -> None:
    repl = chat("/set nohistory")
    assert repl.terminal.keep_history is False
    run_command(repl, "/set history")
    assert repl.terminal.keep_history is True


def test_help_names_every_command(chat) -> None:
    text = _written(chat("/?", "/? set", "/show"))
    names = [*COMMANDS, *(f"/set {name}" for name in SET), *(f"/show {name}" for name in SHOW)]
    assert [name for name in names if f"  {name}" not in text] == []


def test_show_prints_what_the_daemon_says(chat, daemon) -> None:
    daemon.on("POST", "/api/show", {"system": "Model's", "template": "{{ .Prompt }}", "modelfile": "FROM x"})
    text = _written(
        chat("/show system", "/show template", "/show modelfile", "/show license", "/set system Mine", "/show system")
    )
    assert text == ("Model's\n{{ .Prompt }}\nFROM x\nThere is no license.\nSet the system text.\nMine\n\n")


def test_show_parameters_lists_the_models_and_the_chats(chat, daemon) -> None:
    daemon.on("POST", "/api/show", {"parameters": "seed 1"})
    text = _written(chat("/set parameter top_k 3", "/show parameters"))
    assert "Parameters of the model:\n  seed 1\nParameters of this chat:\n  top_k" in text


def test_clear_forgets_the_conversation(chat, daemon) -> None:
    chat("hi", "/clear", "and?")
    assert daemon.sent("/api/chat")[2]["messages"] == [{"role": "user", "content": "and?"}]


def test_load_switches_the_model_and_starts_anew(chat, daemon) -> None:
    daemon.on("POST", "/api/chat", LOADED, _reply("Hello"), LOADED, _reply("Again"))
    chat("hi", "/load other", "and?", system="Mine")
    assert daemon.sent("/api/chat")[2] == {"model": "other", "messages": [], "stream": False}
    assert daemon.sent("/api/chat")[3] == {"model": "other", "messages": [{"role": "user", "content": "and?"}]}


def test_load_keeps_the_old_model_when_the_new_one_is_absent(chat, daemon) -> None:
    daemon.on("POST", "/api/chat", LOADED, Status(404, {"error": "model 'other' not found"}), _reply("Hello"))
    repl = chat("/load other", "hi")
    assert "Error: model 'other' not found\n" in _written(repl)
    assert daemon.sent("/api/chat")[2]["model"] == "m"


def test_save_makes_a_model_with_system_parameters_and_messages(chat, daemon) -> None:
    first = {"role": "user", "content": "the model's own"}
    daemon.on("POST", "/api/show", {"messages": [first]})
    daemon.on("POST", "/api/create", [{"status": "writing manifest"}, {"status": "success"}])
    repl = chat("/set parameter seed 7", "/set system Mine", "hi", "/save mine")
    assert daemon.sent("/api/create") == [
        {
            "model": "mine",
            "from": "m",
            "system": "Mine",
            "parameters": {"seed": 7},
            "messages": [first, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello"}],
        }
    ]
    assert "Created model 'mine'\n" in _written(repl)


def test_bye_leaves_without_reading_on(chat) -> None:
    assert chat("/bye", "hi").terminal.prompts == [">>> "]


def _read_until(descriptor: int, pattern: bytes, seen: bytes = b"") -> bytes:
    deadline = time.monotonic() + 20
    while not re.search(pattern, seen):
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"{pattern!r} did not appear in {seen!r}"
        seen += os.read(descriptor, 65536)
    return seen


def test_chat_works_on_a_real_terminal(chat, daemon, environment, tmp_path) -> None:
    del chat  # Only its scripted answers are wanted.
    master, slave = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "corral", "run", "m"]
    with (
        subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=terminal) as process,
        contextlib.ExitStack() as at_failure,
    ):
        at_failure.callback(process.kill)
        os.close(slave)
        _read_until(master, b">>>")
        os.write(master, b"dropped\x03\x1b[200~two\nlines\x1b[201~\r")
        seen = _read_until(master, rb"Hello")
        seen = _read_until(master, rb"(?s)Hello.*>>>", seen)
        os.write(master, b"/bye\r")
        assert process.wait(timeout=20) == 0
        at_failure.pop_all()
    os.close(master)
    assert daemon.sent("/api/chat")[1]["messages"] == [{"role": "user", "content": "two\nlines"}]
    history = tmp_path / "state" / "corral" / "history"
    assert "+two\n+lines\n" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
