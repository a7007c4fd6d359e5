"""What commands share: the --no-start option, the way to a client, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import CorralError

if TYPE_CHECKING:
    from .client import Client

_NO_START = "corral.no_start"


def no_start_option() -> click.Option:
    """--no-start, which may stand before and after the command's name."""
    return click.Option(
        ["--no-start"],
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Fail when no daemon runs, rather than start one.",
    )


def _remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del param
    if value:
        # click shares `meta` between the group's context and the command's.
        ctx.meta[_NO_START] = True


class DaemonCommand(click.Command):
    """A command that takes --no-start besides its own options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(no_start_option())


def open_client() -> Client:
    """A client of the daemon that the settings name, started when it has to be.

    Errors: InvalidRequest for a wrong setting, Unreachable when there is no daemon and none can be started.
    """
    from ..core.settings import load_settings
    from .autostart import connect

    start = not click.get_current_context().meta.get(_NO_START, False)
    return connect(load_settings(), start)


def warn(message: str) -> None:
    """One line on standard error."""
    click.echo(f"warning: {message}", err=True)


def print_text(text: str) -> None:
    """Text of a model on standard output, exactly, but for a newline at its end where it has none."""
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")


def print_json(value: Any) -> None:
    """A value as indented JSON on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def for_each(names: Iterable[str], act: Callable[[str], None]) -> int:
    """Do something to each name, also after one failed. Returns the exit code: 1 when one did, each reported.

    Errors: Unreachable, which would fail for all.
    """
    code = 0
    for name in names:
        try:
            act(name)
        except CorralError as error:
            click.echo(f"Error: {error.message}", err=True)
            code = 1
    return code
