"""`corral list`: the installed models."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from ..command import DaemonCommand, open_client, print_json
from ..tables import installed_table


@click.command("list", cls=DaemonCommand)
@click.argument("prefix", metavar="[FILTER]", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="Print the daemon's answer as JSON.")
def list_models(prefix: str, as_json: bool) -> None:
    """List installed models, newest first. FILTER: only names that start with it."""
    answer = open_client().request("GET", "/api/tags")
    models = [model for model in answer["models"] if model["name"].lower().startswith(prefix.lower())]
    if as_json:
        print_json({"models": models})
    else:
        click.echo(installed_table(models, datetime.now(UTC)), nl=False)
