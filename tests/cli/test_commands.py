"""The commands that list, show and change models: what they ask the daemon for and what they print."""

from __future__ import annotations

import json

import pytest
from cli_server import Status
from corral import __version__

MODELS = [
    {"name": "smollm2:latest", "digest": "a" * 64, "size": 91_700_000, "modified_at": "2020-01-01T00:00:00Z"},
    {"name": "Other:v1", "digest": "b" * 64, "size": 12, "modified_at": "2020-01-01T00:00:00Z"},
]


@pytest.mark.parametrize("name", ["list", "ls"])
def test_list_prints_a_table(corral, daemon, name: str) -> None:
    daemon.on("GET", "/api/tags", {"models": MODELS})
    outcome = corral(name)
    assert outcome.code == 0
    assert outcome.out.splitlines()[0].split() == ["NAME", "ID", "SIZE", "MODIFIED"]
    assert outcome.out.splitlines()[1].startswith("smollm2:latest    aaaaaaaaaaaa    91 MB    ")
    assert outcome.err == ""


def test_list_shows_the_header_alone_when_nothing_is_installed(corral, daemon) -> None:
    daemon.on("GET", "/api/tags", {"models": []})
    assert corral("list").out.split() == ["NAME", "ID", "SIZE", "MODIFIED"]


def test_list_keeps_names_that_start_with_the_filter_in_any_case(corral, daemon) -> None:
    daemon.on("GET", "/api/tags", {"models": MODELS})
    assert [row["name"] for row in json.loads(corral("list", "--json", "oth").out)["models"]] == ["Other:v1"]


@pytest.mark.parametrize(("command", "path"), [("list", "/api/tags"), ("ps", "/api/ps")])
def test_json_is_the_daemons_answer(corral, daemon, command: str, path: str) -> None:
    daemon.on("GET", path, {"models": MODELS})
    assert json.loads(corral(command, "--json").out) == {"models": MODELS}


def test_show_prints_one_part_exactly(corral, daemon) -> None:
    daemon.on("POST", "/api/show", {"modelfile": "FROM x\nSYSTEM \x1b[1m\n", "system": "no newline"})
    assert corral("show", "m", "--modelfile").out == "FROM x\nSYSTEM \x1b[1m\n"
    assert corral("show", "m", "--system").out == "no newline\n"
    assert corral("show", "m", "--license").out == ""
    assert daemon.sent("/api/show")[0] == {"model": "m", "verbose": False}


def test_show_json_is_the_daemons_answer(corral, daemon) -> None:
    daemon.on("POST", "/api/show", {"system": "é", "capabilities": ["completion"]})
    outcome = corral("show", "m", "--json", "--verbose")
    assert json.loads(outcome.out) == {"system": "é", "capabilities": ["completion"]}
    assert daemon.sent("/api/show") == [{"model": "m", "verbose": True}]


def test_show_refuses_two_parts(corral) -> None:
    assert corral("show", "m", "--system", "--license").code == 2


def test_cp_sends_both_names(corral, daemon) -> None:
    daemon.on("POST", "/api/copy", None)
    assert corral("cp", "a", "b") == (0, "copied 'a' to 'b'\n", "")
    assert daemon.sent("/api/copy") == [{"source": "a", "destination": "b"}]


def test_rm_tries_all_and_reports_the_absent(corral, daemon) -> None:
    daemon.on("DELETE", "/api/delete", None, Status(404, {"error": "model 'nosuch' not found"}), None)
    outcome = corral("rm", "a", "nosuch", "b")
    assert outcome == (1, "deleted 'a'\ndeleted 'b'\n", "Error: model 'nosuch' not found\n")
    assert [body["model"] for body in daemon.sent("/api/delete")] == ["a", "nosuch", "b"]


def test_stop_unloads_each_without_a_prompt(corral, daemon) -> None:
    daemon.on("POST", "/api/generate", {"done": True, "done_reason": "unload"})
    assert corral("stop", "a", "b") == (0, "", "")
    assert daemon.sent("/api/generate") == [{"model": name, "keep_alive": 0, "stream": False} for name in ("a", "b")]


def test_version_names_both_and_warns_when_they_differ(corral, daemon) -> None:
    daemon.on("GET", "/api/version", {"version": "0.0.1"})
    outcome = corral("version")
    assert outcome.out == f"client {__version__}\ndaemon 0.0.1\n"
    assert outcome.err == "warning: the versions differ: restart the daemon\n"
    assert json.loads(corral("version", "--json").out) == {"client": __version__, "daemon": "0.0.1"}


def test_config_shows_value_and_source_and_starts_nothing(corral, monkeypatch, socket_path) -> None:
    monkeypatch.setenv("OLLAMA_KEEP_ALIVE", "-1")
    monkeypatch.setenv("CORRAL_HOST", "[::1]:11501")
    values = json.loads(corral("config", "--json").out)
    assert values["keep_alive"] == {"value": -1, "source": "OLLAMA_KEEP_ALIVE"}
    assert values["host"] == {"value": "http://[::1]:11501", "source": "CORRAL_HOST"}
    assert values["max_queue"] == {"value": 512, "source": "default"}
    rows = {line.split()[0]: line.split()[1:] for line in corral("config").out.splitlines()}
    assert rows["socket"] == [str(socket_path), "CORRAL_SOCKET"]
    assert rows["debug"] == ["false", "default"]
    assert not socket_path.exists()


def test_serve_offers_a_flag_for_each_setting(corral) -> None:
    from corral.core.settings import SETTINGS

    text = corral("serve", "--help").out
    assert [name for name in SETTINGS if f"--{name.replace('_', '-')} " not in text] == []


def test_serve_refuses_a_wrong_flag_before_it_starts(corral) -> None:
    outcome = corral("serve", "--max-queue", "many")
    assert outcome.code == 1
    assert outcome.err.startswith("Error: setting max_queue (flag)")
