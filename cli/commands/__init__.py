"""The table of commands: where each lives and its help line. Nothing is imported before it is used (design rule 18)."""

from __future__ import annotations

from typing import NamedTuple


class CommandRow(NamedTuple):
    """`target` is module:attribute; hidden rows are second names, left out of the help."""

    target: str
    help: str
    hidden: bool = False


COMMANDS: dict[str, CommandRow] = {
    "serve": CommandRow("corral.cli.commands.serve:serve", "Run the daemon in the foreground"),
    "pull": CommandRow("corral.cli.commands.pull:pull", "Fetch a model from a registry, an index, a URL or a file"),
    "create": CommandRow("corral.cli.commands.create:create", "Make a model from a Modelfile"),
    "run": CommandRow("corral.cli.commands.run:run", "Answer a prompt, or chat when there is none"),
    "list": CommandRow("corral.cli.commands.list:list_models", "List installed models"),
    "ls": CommandRow("corral.cli.commands.list:list_models", "List installed models", hidden=True),
    "ps": CommandRow("corral.cli.commands.ps:ps", "List loaded models"),
    "show": CommandRow("corral.cli.commands.show:show", "Show what a model is made of"),
    "cp": CommandRow("corral.cli.commands.cp:cp", "Copy a model to another name"),
    "rm": CommandRow("corral.cli.commands.rm:rm", "Remove models"),
    "stop": CommandRow("corral.cli.commands.stop:stop", "Unload models from memory"),
    "version": CommandRow("corral.cli.commands.version:version", "Show the versions of this client and of the daemon"),
    "config": CommandRow("corral.cli.commands.config:config", "Show every setting, its value and where it comes from"),
}
