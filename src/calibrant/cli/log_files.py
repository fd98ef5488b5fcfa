"""Logs of language-model evaluations on the command line: --log makes rows of them, for every command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.output import print_note
from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.files import scratch_folder

if TYPE_CHECKING:
    from calibrant.logs.answer import Options
    from calibrant.logs.rows import LogSummary

TOOL, CHOSEN, SUMMARY = "calibrant.log", "calibrant.log.options", "calibrant.log.summary"
ORIGINALS = "calibrant.log.originals"  # where the context keeps the logs behind the files of rows
NUMBERS = ("scale", "threshold")
LOG_OPTIONS = ("confidence", "score", "filter", "field", "pattern", *NUMBERS, "partial", "topic", "cluster")
GROUPED = ("evaluate", "audit")  # commands that look at tasks and topics without being asked


def log_options() -> list[click.Option]:
    """Return --log and --log-option, which a command that reads files gets."""
    tool = click.Option(
        ["--log"], type=click.Choice(["lm-eval", "inspect", "auto"]), is_eager=True, expose_value=False,
        callback=_choose_tool, help="FILE is a log of this tool: confidence and correctness of answers.",
    )  # fmt: skip
    option = click.Option(
        ["--log-option"], multiple=True, is_eager=True, expose_value=False, callback=_choose_options,
        metavar="NAME=VALUE",
        help=f"How to read the log: {', '.join(LOG_OPTIONS[:-1])} or {LOG_OPTIONS[-1]}.",
    )  # fmt: skip
    return [tool, option]


def _choose_tool(context: click.Context, option: click.Parameter, tool: str | None) -> None:
    if tool is not None:
        context.meta[TOOL] = tool


def _choose_options(context: click.Context, option: click.Parameter, given: Sequence[str]) -> None:
    chosen: dict[str, Any] = {}
    for text in given:
        name, equal, value = text.partition("=")
        if not equal:
            raise InvalidInputError(sentence("--log-option", "must be NAME=VALUE", f"got {text!r}"))
        if name not in LOG_OPTIONS:
            raise reject_name("--log-option", name, list(LOG_OPTIONS))
        chosen[name] = int(value) if name == "filter" and value.isdecimal() else value
        if name in NUMBERS:
            try:
                chosen[name] = float(value)
            except ValueError:
                rule = "must be a number"
                raise InvalidInputError(sentence(f"--log-option {name}", rule, f"got {value!r}")) from None
    context.meta[CHOSEN] = chosen


def chosen_log(context: click.Context | None = None) -> tuple[str | None, Options] | None:
    """Return tool and options where FILE is a log, None where it is not."""
    from calibrant.logs.answer import Options

    meta = (context or click.get_current_context()).meta
    if TOOL not in meta:
        if meta.get(CHOSEN):
            raise InvalidInputError(sentence("--log-option", "needs --log", hint="--log auto"))
        return None
    return None if meta[TOOL] == "auto" else meta[TOOL], Options(**meta.get(CHOSEN, {}))


def log_summary() -> LogSummary | None:
    """Return what was read from a log and how, None where FILE was not a log."""
    found: LogSummary | None = click.get_current_context().meta.get(SUMMARY)
    return found


def original_name(file: str) -> str:
    """Return the name of the log that a file of rows was made from, or the file's own."""
    return str(click.get_current_context().meta.get(ORIGINALS, {}).get(file, file))


def rows_of_log(context: click.Context, names: Sequence[str], separate: bool) -> tuple[str, ...]:
    """Write the rows of logs to files of the usual kind and return their names; other files as they are.

    All logs become one file, unless the command treats its files separately.
    """
    chosen = chosen_log(context)
    if chosen is None:
        return tuple(names)
    context.default_map = {**(context.default_map or {}), "outcome": "correct", "prediction": "confidence"}
    context.default_map |= {"predictions": ["confidence"]}
    if context.command.name == "compare":  # one log per model
        return tuple(names)
    parts = [[name] for name in names] if separate else [list(names)]
    return tuple(_write_rows(context, part, *chosen) for part in parts)


def _write_rows(context: click.Context, names: list[str], tool: str | None, options: Options) -> str:
    from calibrant.logs.rows import LogRows

    rows = LogRows(names, tool, options)
    path = context.with_resource(scratch_folder()) / f"{Path(names[0]).stem}.csv"
    rows.write_csv(path)
    context.meta[SUMMARY] = rows.summary
    context.meta.setdefault(ORIGINALS, {})[str(path)] = names[0]
    if rows.summary.clustered:
        context.default_map = {**(context.default_map or {}), "clusters": "cluster"}
    if context.command.name == "classes":
        _need_choices(rows.summary, names[0])
        of_choices = {"outcome": "label", "predictions": rows.summary.choices}
        of_choices |= {"labels": ",".join(str(k) for k in range(len(rows.summary.choices)))}
        context.default_map = {**(context.default_map or {}), **of_choices}
    groups = ",".join(rows.summary.groups())
    if groups and context.command.name in GROUPED:
        context.default_map = {**(context.default_map or {}), "groups": groups}
    for said in rows.summary.sentences():
        print_note(said)
    return str(path)


def _need_choices(summary: LogSummary, name: str) -> None:
    if len(summary.choices) < 2:
        rule, hint = "must have probabilities of choices", "pass the log of a multiple-choice task"
        raise InvalidInputError(sentence(f"file {name!r}", rule, "got none in the first answer", hint))
