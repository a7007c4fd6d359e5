"""`corral show`: one model, whole or one part of it."""

from __future__ import annotations

import click

from ..command import DaemonCommand, open_client, print_json, print_text
from ..description import describe


@click.command(cls=DaemonCommand)
@click.argument("name")
@click.option("--modelfile", is_flag=True, help="Print its Modelfile.")
@click.option("--parameters", is_flag=True, help="Print its parameters.")
@click.option("--system", is_flag=True, help="Print its system text.")
@click.option("--template", is_flag=True, help="Print its chat template.")
@click.option("--license", is_flag=True, help="Print its license.")
@click.option("--json", "as_json", is_flag=True, help="Print the daemon's answer as JSON.")
@click.option("--verbose", is_flag=True, help="Metadata and tensors too.")
def show(name: str, as_json: bool, verbose: bool, **flags: bool) -> None:
    """Show what a model is made of."""
    parts = [part for part, wanted in flags.items() if wanted]
    if len(parts) + as_json > 1:
        raise click.UsageError(f"give only one of {', '.join(f'--{part}' for part in flags)} and --json")
    shown = open_client().request("POST", "/api/show", {"model": name, "verbose": verbose})
    if as_json:
        print_json(shown)
    elif parts:
        print_text(shown.get(parts[0], ""))
    else:
        print_text(describe(shown, verbose))
