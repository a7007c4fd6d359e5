"""The `corral` command: finds commands in their table, imports them on use, and turns every error into one line."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from .. import __version__
from ..core.errors import CorralError
from ..core.options import nearest
from .command import no_start_option
from .commands import COMMANDS

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are rows of COMMANDS. Help lines come from the table, so `--help` imports no command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return [name for name, row in COMMANDS.items() if not row.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        module, _, attribute = row.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{row.target} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name, and where there is none, say which one is near."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = nearest(name, list(COMMANDS))
            hint = f" Did you mean {near!r}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    params=[no_start_option()],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-v", "--version", prog_name="corral", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Manage and run models on this machine."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Returns the exit code: 0, 1 after an error, 2 after a wrong command line, 130 after Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An answer may hold characters that the terminal's encoding lacks; that must not end it.
            stream.reconfigure(errors="replace")
    try:
        code = cli.main(args=arguments, prog_name="corral", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _leave_quietly()
    except (click.ClickException, CorralError) as error:
        return _fail(error.message)
    except OSError as error:
        return _fail(f"input or output failed: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  # The last line of defence: a traceback helps nobody at a terminal.
        return _fail(f"{type(error).__name__}: {error} (this is a fault in corral)")
    return code if isinstance(code, int) else EXIT_OK


def _fail(message: str) -> int:
    line = " ".join(part.strip() for part in message.splitlines())
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"Error: {line}", err=True)
    return EXIT_ERROR


def _leave_quietly() -> int:
    """Whoever read our output has gone: nothing is left to say. Python must not try to flush into the void either.

    click does the same, with the same exit code, for commands that notice before they end.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_ERROR
