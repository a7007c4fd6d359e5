"""`corral cp`: another name for a model."""

from __future__ import annotations

import click

from ..command import DaemonCommand, open_client


@click.command(cls=DaemonCommand)
@click.argument("source")
@click.argument("destination")
def cp(source: str, destination: str) -> None:
    """Copy the model SOURCE to the name DESTINATION. Its data is shared, not copied."""
    open_client().request("POST", "/api/copy", {"source": source, "destination": destination})
    click.echo(f"copied {source!r} to {destination!r}")
