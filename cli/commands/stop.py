"""`corral stop`: unload models."""

from __future__ import annotations

import click

from ..command import DaemonCommand, for_each, open_client


@click.command(cls=DaemonCommand)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def stop(names: tuple[str, ...]) -> int:
    """Unload models from memory once their requests are done. They stay installed."""
    client = open_client()

    def unload(name: str) -> None:
        client.request("POST", "/api/generate", {"model": name, "keep_alive": 0, "stream": False})

    return for_each(names, unload)
