"""`corral rm`: remove models."""

from __future__ import annotations

import click

from ..command import DaemonCommand, for_each, open_client


@click.command(cls=DaemonCommand)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def rm(names: tuple[str, ...]) -> int:
    """Remove models. Each NAME is tried; the exit code is 1 when one could not be removed."""
    client = open_client()

    def remove(name: str) -> None:
        client.request("DELETE", "/api/delete", {"model": name})
        click.echo(f"deleted {name!r}")

    return for_each(names, remove)
