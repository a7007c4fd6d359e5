"""`corral config`: every setting, its effective value and where it comes from. Starts nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from ...core.address import Address
from ...core.settings import SETTINGS, load_settings
from ..command import DaemonCommand, print_json
from ..tables import format_table


@click.command(cls=DaemonCommand)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def config(as_json: bool) -> None:
    """Show every setting, its value and where it comes from. Times are seconds; -1 means never."""
    settings = load_settings()
    values = {name: _plain(getattr(settings, name)) for name in SETTINGS}
    if as_json:
        print_json({name: {"value": value, "source": settings.sources[name]} for name, value in values.items()})
        return
    rows = [(name, _shown(value), settings.sources[name]) for name, value in values.items()]
    click.echo(format_table(("SETTING", "VALUE", "SOURCE"), rows), nl=False)


def _plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, Address):
        return f"{value.scheme}://{f'[{value.host}]' if ':' in value.host else value.host}:{value.port}"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float):
        return -1 if math.isinf(value) else int(value) if value.is_integer() else value
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else str(value)
