"""The /commands of a chat: one table a level, each row what it takes, what it does, and its line of help."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..core.options import OPTIONS, RETIRED, Kind, nearest, parse_option
from .answer import spinner
from .description import describe

if TYPE_CHECKING:
    from .repl import Repl


class ReplRow(NamedTuple):
    """`run` gets the chat and the text after the command's name. `takes` is empty where nothing follows."""

    run: Callable[[Repl, str], None]
    takes: str
    help: str


def is_command(text: str) -> bool:
    """Whether a message is a command: `/` and a word without another `/`, which a path would have.

    Of messages with several lines only a system text is one, since anything may have been pasted.
    """
    if "\n" in text and not text.startswith("/set system"):
        return False
    word = text.split(maxsplit=1)[0]
    return word == "/?" or (word.startswith("/") and word[1:].isalpha())


def run_command(repl: Repl, text: str) -> None:
    """Run a command of COMMANDS, or say which is near.

    Errors: Failure, Unreachable.
    """
    _dispatch(repl, COMMANDS, "", text)


def _dispatch(repl: Repl, table: dict[str, ReplRow], parent: str, text: str) -> None:
    word, rest = _split(text)
    row = table.get(word)
    if not word:
        _write_help(repl, table, parent)
    elif row is None:
        near = nearest(word, list(table))
        hint = f"did you mean {parent}{near}?" if near else "/? lists the commands"
        repl.write(f"Unknown command {parent}{word}: {hint}\n")
    elif row.takes and not rest and not row.takes.startswith("["):
        repl.write(f"Usage: {parent}{word} {row.takes}\n")
    elif not row.takes and rest:
        repl.write(f"{parent}{word} takes nothing after it\n")
    else:
        row.run(repl, rest)


def _split(text: str) -> tuple[str, str]:
    """The first word, and what follows it as it stands."""
    words = text.split(maxsplit=1)
    return words[0] if words else "", words[1] if len(words) > 1 else ""


def _write_help(repl: Repl, table: dict[str, ReplRow], parent: str) -> None:
    names = [f"{parent}{name} {row.takes}".rstrip() for name, row in table.items()]
    width = max(len(name) for name in names)
    lines = [f"  {name.ljust(width)}  {row.help}\n" for name, row in zip(names, table.values(), strict=True)]
    repl.write("Available commands:\n" + "".join(lines))
    if table is COMMANDS:
        repl.write('\nUse """ to begin and to end a message of several lines.\n')


def _help(repl: Repl, text: str) -> None:
    tables = {"set": SET, "/set": SET, "show": SHOW, "/show": SHOW}
    word = text.strip()
    if word in tables:
        _write_help(repl, tables[word], f"/{word.lstrip('/')} ")
    else:
        _write_help(repl, COMMANDS, "")


def _bye(repl: Repl, text: str) -> None:
    del text
    repl.is_over = True


def _clear(repl: Repl, text: str) -> None:
    del text
    repl.session.clear()
    repl.write("Cleared the conversation.\n")


def _load(repl: Repl, text: str) -> None:
    repl.write(f"Loading model {text.strip()!r}\n")
    with spinner(repl.terminal.out):
        repl.session.load(text.strip())


def _save(repl: Repl, text: str) -> None:
    repl.session.save(text.strip())
    repl.write(f"Created model {text.strip()!r}\n")


def _set_parameter(repl: Repl, text: str) -> None:
    name, value = _split(text)
    if name in RETIRED:
        repl.write(f"Parameter {name!r} has no effect\n")
    elif name not in OPTIONS:
        near = nearest(name, list(OPTIONS))
        repl.write(f"Unknown parameter {name!r}" + (f"; did you mean {near!r}?\n" if near else "\n"))
    elif not value:
        repl.write("Usage: /set parameter NAME VALUE\n")
    else:
        try:
            texts = shlex.split(value) if OPTIONS[name].kind is Kind.STRINGS else [value]
            repl.session.options[name] = parse_option(name, texts)
        except ValueError as error:
            repl.write(f"{str(error)[:1].upper()}{str(error)[1:]}\n")
            return
        repl.write(f"Set parameter {name!r} to {value!r}\n")


def _set_system(repl: Repl, text: str) -> None:
    repl.session.system = text
    repl.write("Set the system text.\n")


def _set_format(repl: Repl, text: str) -> None:
    if text.strip() != "json":
        repl.write("Usage: /set format json\n")
        return
    repl.session.fields["format"] = "json"
    repl.write("Set the format to JSON.\n")


def _unset_format(repl: Repl, text: str) -> None:
    del text
    repl.session.fields.pop("format", None)
    repl.write("Disabled the format.\n")


def _verbosity(verbose: bool) -> Callable[[Repl, str], None]:
    def set_verbosity(repl: Repl, text: str) -> None:
        del text
        repl.verbose = verbose
        repl.write(f"Set {'verbose' if verbose else 'quiet'} mode.\n")

    return set_verbosity


def _history(keep: bool) -> Callable[[Repl, str], None]:
    def set_history(repl: Repl, text: str) -> None:
        del text
        repl.terminal.keep_history = keep
        repl.write(f"What you type is {'kept' if keep else 'not kept'} from now on.\n")

    return set_history


def _thinking(think: bool) -> Callable[[Repl, str], None]:
    def set_thinking(repl: Repl, text: str) -> None:
        del text
        repl.session.fields["think"] = think
        repl.write(f"Set {'think' if think else 'nothink'} mode.\n")

    return set_thinking


def _wrapping(wraps: bool) -> Callable[[Repl, str], None]:
    def set_wrapping(repl: Repl, text: str) -> None:
        del text
        repl.wraps = wraps
        repl.write(f"Set {'wordwrap' if wraps else 'nowordwrap'} mode.\n")

    return set_wrapping


def _show_info(repl: Repl, text: str) -> None:
    del text
    repl.write(describe(repl.session.show()))


def _show_parameters(repl: Repl, text: str) -> None:
    del text
    own = repl.session.show().get("parameters", "")
    repl.write(f"Parameters of the model:\n{_indent(own) or '  none'}\n")
    if repl.session.options:
        chosen = "\n".join(f"{name:<30} {value}" for name, value in repl.session.options.items())
        repl.write(f"Parameters of this chat:\n{_indent(chosen)}\n")


def _show_system(repl: Repl, text: str) -> None:
    del text
    system = repl.session.system
    shown = repl.session.show().get("system", "") if system is None else system
    repl.write(f"{shown or 'There is no system text.'}\n")


def _show_text(field: str, absent: str) -> Callable[[Repl, str], None]:
    def show_text(repl: Repl, text: str) -> None:
        del text
        repl.write(f"{repl.session.show().get(field) or absent}\n")

    return show_text


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


SET: dict[str, ReplRow] = {
    "parameter": ReplRow(_set_parameter, "NAME VALUE", "Set a generation parameter"),
    "system": ReplRow(_set_system, "TEXT", "Set the system text"),
    "verbose": ReplRow(_verbosity(True), "", "Show statistics after answers"),
    "quiet": ReplRow(_verbosity(False), "", "Show no statistics"),
    "history": ReplRow(_history(True), "", "Keep what is typed for later chats"),
    "nohistory": ReplRow(_history(False), "", "Do not keep what is typed"),
    "wordwrap": ReplRow(_wrapping(True), "", "Keep words whole at the end of a line"),
    "nowordwrap": ReplRow(_wrapping(False), "", "Leave lines to the terminal"),
    "format": ReplRow(_set_format, "json", "Have answers be JSON"),
    "noformat": ReplRow(_unset_format, "", "Have answers be free text"),
    "think": ReplRow(_thinking(True), "", "Have the model think first"),
    "nothink": ReplRow(_thinking(False), "", "Have the model answer at once"),
}

SHOW: dict[str, ReplRow] = {
    "info": ReplRow(_show_info, "", "Show what the model is made of"),
    "license": ReplRow(_show_text("license", "There is no license."), "", "Show its license"),
    "modelfile": ReplRow(_show_text("modelfile", ""), "", "Show its Modelfile"),
    "parameters": ReplRow(_show_parameters, "", "Show its parameters and those of this chat"),
    "system": ReplRow(_show_system, "", "Show the system text"),
    "template": ReplRow(_show_text("template", "There is no template."), "", "Show its chat template"),
}

COMMANDS: dict[str, ReplRow] = {
    "/set": ReplRow(lambda repl, text: _dispatch(repl, SET, "/set ", text), "[NAME] [VALUE]", "Change this chat"),
    "/show": ReplRow(lambda repl, text: _dispatch(repl, SHOW, "/show ", text), "[PART]", "Show parts of the model"),
    "/load": ReplRow(_load, "MODEL", "Switch to another model"),
    "/save": ReplRow(_save, "MODEL", "Save this chat as a model"),
    "/clear": ReplRow(_clear, "", "Forget the conversation"),
    "/bye": ReplRow(_bye, "", "Leave"),
    "/help": ReplRow(_help, "[COMMAND]", "Show this help"),
    "/?": ReplRow(_help, "[COMMAND]", "Show this help"),
}
