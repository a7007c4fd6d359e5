"""`corral ps`: the loaded models."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from ..command import DaemonCommand, open_client, print_json
from ..tables import loaded_table


@click.command(cls=DaemonCommand)
@click.option("--json", "as_json", is_flag=True, help="Print the daemon's answer as JSON.")
def ps(as_json: bool) -> None:
    """List the models that are loaded now, and until when."""
    answer = open_client().request("GET", "/api/ps")
    if as_json:
        print_json(answer)
    else:
        click.echo(loaded_table(answer["models"], datetime.now(UTC)), nl=False)
