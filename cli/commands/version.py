"""`corral version`: of this client and of the daemon."""

from __future__ import annotations

import click

from ... import __version__
from ..command import DaemonCommand, open_client, print_json


@click.command(cls=DaemonCommand)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def version(as_json: bool) -> None:
    """Show the versions of this client and of the daemon."""
    daemon_version = open_client().request("GET", "/api/version")["version"]
    if as_json:
        print_json({"client": __version__, "daemon": daemon_version})
        return
    click.echo(f"client {__version__}\ndaemon {daemon_version}")
    if daemon_version != __version__:
        click.echo("warning: the versions differ: restart the daemon", err=True)
