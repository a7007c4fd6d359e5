"""The rules of the house, checked: import direction, sizes, tables, environment reads, broad excepts, fast start."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("core", "registry", "modelfile", "backends", "daemon")
FOLDERS = (*LAYERS, "cli")
FORBIDDEN_NAMES = {"utils", "common", "helpers", "base", "manager"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
MAX_NESTING = 3
BROAD_EXCEPTS = {"daemon/middleware.py": 1, "backends/runner.py": 1, "cli/main.py": 1}
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)

FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]
TREES = {name: ast.parse((ROOT / name).read_text()) for name in NAMES}
each_file = pytest.mark.parametrize("name", NAMES)


def imported_modules(name: str) -> Iterator[tuple[str, int]]:
    """Absolute names of what a file imports, with the line."""
    package = ["corral", *name.split("/")[:-1]]
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*start, node.module or ""]).rstrip("."), node.lineno


def functions(name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(TREES[name]) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def nesting(node: ast.AST, depth: int = 0) -> int:
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        # An `elif` is an If in the else branch of an If, but reads as one level.
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        deepest = max(deepest, nesting(child, depth + (isinstance(child, _BLOCKS) and not is_elif)))
    return deepest


@each_file
def test_imports_point_to_the_left(name: str) -> None:
    folder = name.split("/")[0]
    allowed = {"core", "cli"} if folder == "cli" else set(LAYERS[: LAYERS.index(folder) + 1])
    if name == "cli/commands/serve.py":
        allowed = allowed | {"daemon"}
    wrong = [
        f"{name}:{line} imports {module}"
        for module, line in imported_modules(name)
        if module.startswith("corral.") and module.split(".")[1] in FOLDERS and module.split(".")[1] not in allowed
    ]
    assert not wrong


def test_core_imports_the_light_things_only() -> None:
    allowed = {"corral", "msgspec", "platformdirs", "yaml", "__future__"} | sys.stdlib_module_names
    used = {module.split(".")[0] for name in NAMES if name.startswith("core/") for module, _ in imported_modules(name)}
    assert used <= allowed


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("llama_cpp", ("backends/llamacpp/binding/", "backends/llamacpp/sampler.py")),
        ("aiohttp", ("daemon/", "registry/")),
    ],
)
def test_library_stays_in_its_place(library: str, home: tuple[str, ...]) -> None:
    users = [name for name in NAMES if any(module.split(".")[0] == library for module, _ in imported_modules(name))]
    assert users
    assert all(name.startswith(home) for name in users)


@each_file
def test_file_opens_with_a_docstring_and_is_short(name: str) -> None:
    text = (ROOT / name).read_text()
    docstring = ast.get_docstring(TREES[name])
    assert docstring, f"{name} has no docstring"
    assert len(text.splitlines()) <= MAX_FILE_LINES
    assert not set(Path(name).with_suffix("").parts) & FORBIDDEN_NAMES


@each_file
def test_functions_are_small(name: str) -> None:
    for function in functions(name):
        where = f"{name}:{function.lineno} {function.name}"
        assert (function.end_lineno or 0) - function.lineno + 1 <= MAX_FUNCTION_LINES, where
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        counted = [argument for argument in arguments if argument.arg not in ("self", "cls")]
        is_command = name.startswith("cli/commands/")  # click gives each option of a command as a parameter
        assert is_command or len(counted) <= MAX_PARAMETERS, where
        assert nesting(function) <= MAX_NESTING, where


@each_file
def test_environment_is_read_in_settings_only(name: str) -> None:
    reads = [
        node.lineno
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    ]
    assert not reads or name == "core/settings.py", f"{name}: lines {reads}"


@each_file
def test_no_ambient_state(name: str) -> None:
    assert not [node.lineno for node in ast.walk(TREES[name]) if isinstance(node, ast.Global)]


def test_broad_excepts_are_in_three_places() -> None:
    found: dict[str, int] = {}
    for name in NAMES:
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
            ):
                found[name] = found.get(name, 0) + 1
    assert found == BROAD_EXCEPTS


@pytest.mark.parametrize(
    "table",
    [
        "corral.backends.table:BACKENDS",
        "corral.cli.commands:COMMANDS",
        "corral.daemon.dialects:DIALECTS",
        "corral.registry.sources:SOURCES",
    ],
)
def test_every_row_of_a_table_can_be_imported(table: str) -> None:
    module, _, attribute = table.partition(":")
    rows = getattr(importlib.import_module(module), attribute)
    assert rows
    for row in rows.values():
        target, _, name = (row if isinstance(row, str) else row.target).partition(":")
        assert hasattr(importlib.import_module(target), name), row


def test_packages_in_pyproject_are_the_folders_that_exist() -> None:
    import tomllib

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    existing = {path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in FILES}
    assert set(listed) == {"corral"} | {f"corral.{package}" for package in existing}


def loaded_modules(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return {module.split(".")[0] for module in output.rsplit("\n", 2)[-2].split()}


def test_help_loads_nothing_heavy() -> None:
    statement = (
        "from corral.cli.main import cli\n"
        "from click.testing import CliRunner\n"
        "assert CliRunner().invoke(cli, ['--help']).exit_code == 0"
    )
    assert not loaded_modules(statement) & {"aiohttp", "torch", "llama_cpp", "rich", "prompt_toolkit", "numpy", "yaml"}


def test_daemon_loads_no_engine() -> None:
    modules = loaded_modules("import corral.daemon.main")
    assert "aiohttp" in modules
    assert not modules & {"torch", "llama_cpp", "numpy", "jinja2", "gguf", "rich"}
