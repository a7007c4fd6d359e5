"""The command line as a whole: lazy loading, help, exit codes, --no-start, pipes that break."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli_server import Status
from corral import __version__
from corral.cli.commands import COMMANDS
from corral.cli.main import cli

_HEAVY = ("aiohttp", "torch", "llama_cpp", "rich", "prompt_toolkit", "corral.core.settings", "http.client")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_start_imports_nothing_heavy_when_only_help_is_asked(option: str) -> None:
    code = f"""
import sys
from corral.cli.main import run
code = run([{option!r}])
print([name for name in {_HEAVY!r} if name in sys.modules], code)
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "[] 0"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_row_of_the_table_leads_to_a_command(name: str) -> None:
    command = cli.get_command(None, name)
    takes_no_start = any("--no-start" in parameter.opts for parameter in command.params)
    assert takes_no_start == (name != "serve")


def test_help_lists_commands_but_no_second_names(corral) -> None:
    outcome = corral()
    listed = [line.split()[0] for line in outcome.out.partition("Commands:\n")[2].splitlines()]
    assert outcome.code == 0
    assert listed == [name for name in COMMANDS if name != "ls"]


def test_version_option_starts_nothing(corral) -> None:
    outcome = corral("--version")
    assert outcome == (0, f"corral {__version__}\n", "")


def test_unknown_command_names_the_nearest(corral) -> None:
    outcome = corral("lits")
    assert outcome.code == 2
    assert "Did you mean 'list'?" in outcome.err


@pytest.mark.parametrize("arguments", [["--no-start", "list"], ["list", "--no-start"], ["--no-start", "rm", "a"]])
def test_no_start_fails_in_one_line_when_no_daemon_runs(corral, arguments: list[str], socket_path) -> None:
    outcome = corral(*arguments)
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith("Error: no daemon runs")
    assert outcome.err.count("\n") == 1
    assert str(socket_path) in outcome.err


@pytest.mark.parametrize(
    "arguments", [["pull", "smol", "extra"], ["show"], ["list", "--nosuchflag"], ["cp", "a", "b", "c"], ["rm"]]
)
def test_wrong_command_line_exits_with_2_and_usage(corral, arguments: list[str]) -> None:
    outcome = corral(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Usage: corral" in outcome.err


def test_daemon_error_is_one_line_on_stderr(corral, daemon) -> None:
    daemon.on("POST", "/api/show", Status(404, {"error": "model 'nosuch:latest'\nnot found"}))
    assert corral("show", "nosuch") == (1, "", "Error: model 'nosuch:latest' not found\n")


def test_fault_is_one_line_without_traceback(corral, daemon) -> None:
    daemon.on("GET", "/api/tags", {"models": [{"nonsense": 1}]})
    outcome = corral("list")
    assert outcome == (1, "", "Error: KeyError: 'name' (this is a fault in corral)\n")


def test_wrong_setting_is_an_error_that_quotes_it(corral, monkeypatch) -> None:
    monkeypatch.setenv("CORRAL_HOST", "127.0.0.1:99999")
    outcome = corral("list")
    assert outcome.code == 1
    assert "'99999' is not a port" in outcome.err


def test_output_ends_quietly_when_the_reader_is_gone(spawn_corral, daemon) -> None:
    daemon.on("GET", "/api/tags", {"models": [{"name": f"model{i}:latest"} for i in range(5000)]})
    read_end, write_end = os.pipe()
    os.close(read_end)
    with spawn_corral("list", stdout=write_end) as process:
        os.close(write_end)
        _, err = process.communicate(timeout=20)
    assert err == b""
    assert process.returncode == 1
