"""Where a setting's value comes from, what it may be, and which source an error names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from corral.core.address import parse_address
from corral.core.durations import NEVER
from corral.core.errors import InvalidRequest
from corral.core.settings import SETTINGS, Settings, child_environment, load_settings

PORTS = {"flag": 1001, "CORRAL_HOST": 1002, "OLLAMA_HOST": 1003, "config.yaml": 1004, "default": 11434}


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """A config.yaml that a test may write."""
    return tmp_path / "config.yaml"


def load(config_file: Path, environ: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """Settings from these sources and no others."""
    return load_settings(flags, environ or {}, config_file)


@pytest.mark.parametrize("first", range(len(PORTS)))
def test_source_when_several_set_a_value(config_file: Path, first: int) -> None:
    present = list(PORTS)[first:]
    flags = {"host": f":{PORTS['flag']}"} if "flag" in present else {}
    environ = {name: f":{PORTS[name]}" for name in present if name.endswith("_HOST")}
    if "config.yaml" in present:
        config_file.write_text(f"host: ':{PORTS['config.yaml']}'\n", encoding="utf-8")
    settings = load(config_file, environ, **flags)
    assert settings.sources["host"] == present[0]
    assert settings.host.port == PORTS[present[0]]


def test_sources_when_nothing_is_set(config_file: Path) -> None:
    settings = load(config_file)
    assert set(settings.sources) == set(SETTINGS)
    assert set(settings.sources.values()) == {"default"}
    assert settings.host == parse_address("127.0.0.1:11434")
    assert settings.keep_alive == 300
    assert (settings.num_parallel, settings.max_loaded_models, settings.max_queue) == (0, 0, 512)
    assert settings.kv_cache_type is None
    assert settings.flash_attention is None
    assert settings.origins == ()
    assert settings.models.name == "models"


def test_socket_when_ports_differ(config_file: Path) -> None:
    first, second = (load(config_file, {"OLLAMA_HOST": port}).socket for port in ("11501", "11502"))
    assert first != second
    assert first.is_absolute()
    assert first.name == "corral-11501.sock"


def test_socket_when_only_ollama_names_it(config_file: Path) -> None:
    settings = load(config_file, {"OLLAMA_SOCKET": "/x/y.sock"})
    assert settings.sources["socket"] == "default"


def test_value_when_the_variable_is_blank(config_file: Path) -> None:
    settings = load(config_file, {"CORRAL_MAX_QUEUE": "  ", "OLLAMA_MAX_QUEUE": " 7 "})
    assert (settings.max_queue, settings.sources["max_queue"]) == (7, "OLLAMA_MAX_QUEUE")


def test_paths_when_relative_or_from_home(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    settings = load(config_file, models="~/models", socket="run/s.sock")
    assert settings.models == tmp_path / "home" / "models"
    assert settings.socket == tmp_path / "run" / "s.sock"


def test_values_when_config_is_typed(config_file: Path) -> None:
    config_file.write_text(
        "keep_alive: -1\nload_timeout: 90\nnum_parallel: 2\nflash_attention: off\nkv_cache_type: q8_0\n"
        "origins: [chrome-extension://*, 'https://a.example']\ndebug: true\n",
        encoding="utf-8",
    )
    settings = load(config_file)
    assert (settings.keep_alive, settings.load_timeout) == (NEVER, 90)
    assert (settings.num_parallel, settings.debug) == (2, True)
    assert (settings.flash_attention, settings.kv_cache_type) == (False, "q8_0")
    assert settings.origins == ("chrome-extension://*", "https://a.example")


def test_values_when_text_from_the_environment(config_file: Path) -> None:
    environ = {
        "OLLAMA_KEEP_ALIVE": "1h",
        "OLLAMA_FLASH_ATTENTION": "1",
        "OLLAMA_ORIGINS": "https://a.example, app://*,",
        "OLLAMA_CONTEXT_LENGTH": "8192",
        "OLLAMA_DEBUG": "0",
    }
    settings = load(config_file, environ)
    assert settings.keep_alive == 3600
    assert settings.flash_attention is True
    assert settings.origins == ("https://a.example", "app://*")
    assert settings.context_length == 8192
    assert settings.debug is False


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("HOST", "127.0.0.1:99999", "'99999'"),
        ("KEEP_ALIVE", "5 m", "'5 m'"),
        ("MAX_QUEUE", "-1", "'-1'"),
        ("NUM_PARALLEL", "two", "'two'"),
        ("NUM_PARALLEL", "1e400", "1e400"),
        ("KV_CACHE_TYPE", "q5_1", "f16, q8_0, q4_0"),
        ("FLASH_ATTENTION", "maybe", "'maybe'"),
        ("ORIGINS", "https://a b", "'https://a b'"),
    ],
)
def test_error_when_a_value_is_bad(config_file: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        load(config_file, {f"OLLAMA_{name}": text})
    assert caught.value.message.startswith(f"setting {name.lower()} (OLLAMA_{name}): ")
    assert said in caught.value.message


@pytest.mark.parametrize("value", ["true", "4.5", "[1]", ".inf", ".nan"])
def test_error_when_config_holds_no_count(config_file: Path, value: str) -> None:
    config_file.write_text(f"max_queue: {value}\n", encoding="utf-8")
    with pytest.raises(InvalidRequest, match=r"setting max_queue \(config.yaml\): "):
        load(config_file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hosts: x\n", "unknown setting hosts; known are host, "),
        (b"- host\n", "must hold `name: value` lines"),
        (b"host: [\n", "is not YAML"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_error_when_config_is_unusable(config_file: Path, content: bytes, said: str) -> None:
    config_file.write_bytes(content)
    with pytest.raises(InvalidRequest) as caught:
        load(config_file)
    assert caught.value.message.startswith("config.yaml")
    assert said in caught.value.message


def test_settings_when_config_is_empty(config_file: Path) -> None:
    config_file.write_text("# nothing yet\n", encoding="utf-8")
    assert load(config_file).max_queue == 512


def test_environment_when_a_child_gets_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_TEST_KEPT", "1")
    environment = child_environment(CORRAL_TEST_ADDED="2")
    assert (environment["CORRAL_TEST_KEPT"], environment["CORRAL_TEST_ADDED"]) == ("1", "2")


@pytest.mark.parametrize("origin", ["://x", "chrome-extension", "http://x:999999", "http://a b"])
def test_origin_that_could_never_match_is_an_error_at_the_start(tmp_path: Path, origin: str) -> None:
    with pytest.raises(InvalidRequest, match="setting origins"):
        load_settings({"origins": origin}, environ={}, config_file=tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "origin", ["*", "https://*.example.org", "chrome-extension://*", "http://10.0.0.1:*", "moz-extension://x"]
)
def test_origins_of_every_scheme_are_accepted(tmp_path: Path, origin: str) -> None:
    assert load_settings({"origins": origin}, environ={}, config_file=tmp_path / "none.yaml").origins == (origin,)
