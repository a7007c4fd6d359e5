"""`corral run`: one answer to a prompt, or a chat where there is none."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ...core.durations import parse_keep_alive
from ...core.errors import CorralError, Failure, InvalidRequest
from ...core.options import OPTIONS, RETIRED, nearest, parse_option
from ..answer import AnswerPrinter, format_statistics
from ..client import Client
from ..command import DaemonCommand, open_client, warn
from .pull import absolute_reference, pull_model


@click.command(cls=DaemonCommand)
@click.argument("model")
@click.argument("words", metavar="[PROMPT]...", nargs=-1)
@click.option("--verbose", is_flag=True, help="Show times and rates after an answer.")
@click.option("--keepalive", "keep_alive", metavar="TEXT", help="How long the model stays loaded, such as 5m.")
@click.option("--system", metavar="TEXT", help="System text in place of the model's.")
@click.option("-o", "--option", "options", metavar="KEY=VALUE", multiple=True, help="A generation option; repeatable.")
@click.option("--format", "answer_format", metavar="TEXT", help="json, or a JSON schema that the answer must fit.")
@click.option("--think/--no-think", default=None, help="Have the model think first, or not.")
@click.option("--nowordwrap", is_flag=True, help="Leave lines to the terminal.")
@click.option("--insecure", is_flag=True, help="Use plain HTTP where the model has to be pulled.")
def run(model: str, words: tuple[str, ...], verbose: bool, nowordwrap: bool, insecure: bool, **choices: Any) -> None:
    """Answer PROMPT, or chat when there is none.

    Text on standard input joins the prompt. MODEL may be a source reference or a GGUF file: it is pulled first.
    """
    prompt = _read_prompt(words)
    fields = _request_fields(**choices)
    client = open_client()
    reference = absolute_reference(model)
    if "://" in reference or reference != model:
        model = pull_model(client, reference, insecure=insecure)
    try:
        if prompt is None:
            _chat(client, model, fields, verbose, not nowordwrap)
        else:
            answer_prompt(client, {"model": model, "prompt": prompt, **fields}, verbose, not nowordwrap)
    except Failure as error:
        raise explain_absence(client, model, error) from None


def answer_prompt(client: Client, body: dict[str, Any], verbose: bool, wraps: bool) -> None:
    """Print the answer to standard output, warnings and statistics to standard error.

    Errors: Failure, Unreachable.
    """
    printer = AnswerPrinter(sys.stdout, sys.stderr, wraps)
    final = printer.print(client.stream("/api/generate", body))
    for warning in dict.fromkeys(final.get("warnings") or []):
        warn(warning)
    if verbose:
        click.echo(format_statistics(final), err=True, nl=False)


def explain_absence(client: Client, model: str, error: Failure) -> CorralError:
    """The error itself, or for a model that is not installed one that says what is near and how to get it."""
    if error.status != 404:
        return error
    names = [str(row["name"]) for row in client.request("GET", "/api/tags")["models"]]
    near = nearest(model, names) or nearest(model, [name.rpartition(":")[0] for name in names])
    hint = f" did you mean {near!r}?" if near else ""
    return Failure(error.code, f"model {model!r} is not installed:{hint} `corral pull {model}` would fetch it")


def _chat(client: Client, model: str, fields: dict[str, Any], verbose: bool, wraps: bool) -> None:
    from ..chat import ChatSession
    from ..repl import Repl
    from ..terminal import PromptTerminal

    Repl(ChatSession(client, model, **fields), PromptTerminal(), verbose, wraps).run()


def _read_prompt(words: tuple[str, ...]) -> str | None:
    """The words, a blank line, and what standard input holds; None when a person waits at a terminal for a chat."""
    prompt = " ".join(words)
    if not sys.stdin.isatty():
        piped = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
        return "\n\n".join(text for text in (prompt, piped) if text)
    if not prompt and sys.stdout.isatty():
        return None
    if not prompt:
        raise click.UsageError("a chat needs a terminal for its output too: give a prompt")
    return prompt


def _request_fields(
    system: str | None, options: tuple[str, ...], answer_format: str | None, think: bool | None, keep_alive: str | None
) -> dict[str, Any]:
    """The fields of a request that the command line sets; the others are left to the model."""
    fields = {
        "system": system,
        "options": parse_options(options) or None,
        "format": parse_format(answer_format) if answer_format else None,
        "think": think,
        "keep_alive": _check_keep_alive(keep_alive),
    }
    return {name: value for name, value in fields.items() if value is not None}


def parse_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE texts as typed options; those of a list gather. Errors: BadParameter."""
    texts: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE, such as temperature=0.2", param_hint="--option")
        if name in RETIRED:
            warn(f'option "{name}" has no effect')
        elif name not in OPTIONS:
            near = nearest(name, list(OPTIONS))
            hint = f"; did you mean {near!r}?" if near else ""
            raise click.BadParameter(f"unknown option {name!r}{hint}", param_hint="--option")
        else:
            texts.setdefault(name, []).append(text)
    try:
        return {name: parse_option(name, values) for name, values in texts.items()}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--option") from None


def parse_format(text: str) -> str | dict[str, Any]:
    """`json`, or a JSON object, which is a schema. Errors: BadParameter."""
    if text == "json":
        return text
    try:
        schema = json.loads(text)
    except ValueError:
        schema = None
    if not isinstance(schema, dict):
        raise click.BadParameter("give json or a JSON object", param_hint="--format")
    return schema


def _check_keep_alive(text: str | None) -> str | None:
    try:
        parse_keep_alive(text)
    except InvalidRequest as error:
        raise click.BadParameter(error.message, param_hint="--keepalive") from None
    return text
