"""`corral serve`: the daemon, in this process. One flag for each row of the table of settings."""

from __future__ import annotations

from typing import Any

import click

from ...core.settings import SETTINGS, load_settings


def _flags() -> list[click.Parameter]:
    flags: list[click.Parameter] = []
    for name, row in SETTINGS.items():
        declaration = f"--{name.replace('_', '-')}"
        if isinstance(row.default, bool):
            # `--debug` alone means true, and `--debug=false` undoes what the environment says.
            flags.append(click.Option([declaration, name], is_flag=False, flag_value="true", help=row.help))
        else:
            flags.append(click.Option([declaration, name], metavar="TEXT", help=row.help))
    return flags


def _serve(**flags: Any) -> int:
    """Run the daemon in the foreground.

    Each setting comes from its flag, else CORRAL_NAME, else OLLAMA_NAME, else config.yaml, else its default.
    """
    settings = load_settings(flags)
    from ...daemon.main import serve as serve_daemon  # here: nothing else of the command line may load the daemon

    return serve_daemon(settings)


serve = click.Command("serve", callback=_serve, params=_flags(), help=_serve.__doc__)
