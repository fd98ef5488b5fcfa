"""How commands read FILE: notation, labels, standard input, databases, logs and censored times."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.censoring import censored
from calibrant.cli.options import (
    NAME,
    ORIGINAL_FILES,
    SCALE,
    SPOOLED,
    F,
    kept,
    kept_option,
    missing_option,
    refuse_typed,
    typed,
)
from calibrant.cli.output import print_note
from calibrant.errors import CalibrantError, InvalidInputError, UnreadableFileError, reject_name
from calibrant.files import scratch_folder
from calibrant.inputs import NamedColumn
from calibrant.io.read import FileNames, copied_table, is_database, outcome_labels, read_table
from calibrant.io.session import each_once, files_behind
from calibrant.io.sources import Notation, default_notation

if TYPE_CHECKING:
    from calibrant.logs.answer import Options
    from calibrant.logs.rows import LogSummary

STARTS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".sketch",
    b"{": ".json",
    b"[": ".json",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}
OTHER_OUTCOMES = ("classes", "distributions")  # commands whose outcomes are classes or quantities
TYPED = "calibrant.typed"  # where the context keeps FILE as it was typed
TOOL, SUMMARY = "calibrant.log", "calibrant.log.summary"
ORIGINALS = "calibrant.log.originals"  # where it keeps the logs behind the files of rows
NUMBERS = ("scale", "threshold")
LOG_OPTIONS = ("confidence", "score", "filter", "field", "pattern", *NUMBERS, "partial", "topic", "cluster")
GROUPED = ("evaluate", "audit")  # commands that look at tasks and topics without being asked


def with_reading_options(command: click.Command) -> click.Command:
    files = [p for p in command.params if isinstance(p, click.Argument) and p.name in ("file", "files")]
    known = {name for p in command.params for name in p.opts}
    run = command.callback
    if not files or run is None:
        return command
    for argument in files:
        argument.callback = _as_files

    def add(name: str, text: str, **settings: Any) -> None:
        kept_option(name, help=text, **settings)(command)

    marks = click.Choice([".", ","])
    add("--decimal", "Decimal mark of numbers in text files.", type=marks, default=".", show_default=False)
    add("--percent", "Read 12 % as 0.12; numbers without the sign stay as they are.", is_flag=True)
    add("--table", "Table of a .duckdb file.", is_eager=True)
    add("--query", "SELECT to run on a .duckdb file, which is opened read-only.", is_eager=True)
    tools = click.Choice(["lm-eval", "inspect", "auto"])
    text = "FILE is a log of this tool: confidence and correctness of answers."
    add("--log", text, type=tools, is_eager=True)
    text = f"How to read the log: {', '.join(LOG_OPTIONS[:-1])} or {LOG_OPTIONS[-1]}."
    add("--log-option", text, multiple=True, is_eager=True, metavar="NAME=VALUE")
    if "--outcome" in known and command.name not in OTHER_OUTCOMES:
        add("--pos-label", "Label of the outcome that counts as 1; the other one counts as 0.")
    if "--prediction" in known and command.name != "classes":
        text = "Scale of the predictions, if it is not 0 to 1, such as 1:10."
        add("--scale", text, type=SCALE, metavar="LOW:HIGH")

    @functools.wraps(run)
    def call(**given: Any) -> Any:
        default_notation.set(_notation(given))
        return run(**given)

    command.callback = call
    return command


def _notation(given: dict[str, Any]) -> Notation:
    notation = Notation(kept("decimal"), kept("percent"))
    label, scale = kept("pos_label"), kept("scale")
    if label is not None:
        column, files = given.get("outcome"), given.get("file") or given.get("files")
        if column is None:
            raise InvalidInputError("--pos-label", "needs --outcome", "got none")
        names = (files,) if isinstance(files, str) else files or ()
        if names and not any(Path(name).suffix in (".sketch", ".json") for name in names):
            default_notation.set(notation)  # the outcomes of a sketch are numbers already
            notation = replace(notation, labels=outcome_labels(names, column, label))
    if scale is not None:
        named = given.get("predictions") or given.get("prediction")
        if not named:
            raise InvalidInputError("--scale", "needs --prediction", "got none")
        columns = (named, *named.split(",")) if isinstance(named, str) else tuple(named)
        notation = replace(notation, scale=scale, scaled=columns)
    return notation


def _as_files(context: click.Context, argument: click.Parameter, value: tuple[str, ...]) -> Any:
    """Put files in place of standard input and of tables in a database; a single name is not a list."""
    if context.resilient_parsing:  # the shell completes a word: nothing is read
        return value
    # a file of defaults may name a table or a query too, for whatever database is read
    selected = {name: kept(name) for name in ("table", "query") if typed(name)}
    if selected and not any(is_database(name) for name in value):
        options = " and ".join(f"--{name}" for name in selected)
        got = f"got {', '.join(value) or 'none'}"
        raise InvalidInputError(options, "must be given with a .duckdb file", got)
    each_once([Path(name) for name in value], "FILE", "must name each file once")
    context.meta[TYPED] = value
    chosen = rows_of_log(context, value, separate=argument.name == "files")
    context.meta[ORIGINAL_FILES] = [file for name in value for file in files_behind(name)]
    names = tuple(_as_file(context, name, selected or context.default_map or {}) for name in chosen)
    if argument.name == "files":
        return names
    return names[0] if len(names) == 1 else names or None


def _as_file(context: click.Context, name: str, selected: Any) -> str:
    if is_database(name):
        folder = context.with_resource(scratch_folder())
        return str(copied_table(name, folder, selected.get("table"), selected.get("query")))
    if name != "-":
        return name
    if sys.stdin.isatty():
        raise UnreadableFileError("standard input", "must be a pipe or a file", "got a terminal")
    path = context.with_resource(scratch_folder()) / "stdin"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        rule, hint = f"must fit into {path.parent.parent}", "TMPDIR names another folder for temporary files"
        raise UnreadableFileError("standard input", rule, error.strerror or str(error), hint) from None
    with path.open("rb") as file:
        start = file.read(4)
    ending = next((ending for mark, ending in STARTS.items() if start.startswith(mark)), ".csv")
    spooled = str(path.rename(path.with_suffix(ending)))
    context.meta.setdefault(SPOOLED, []).append(spooled)
    return spooled


def rows_typed() -> list[str]:
    """Return FILE and the options that say how to read it, as typed: another command reads the same rows."""
    words = list(click.get_current_context().meta.get(TYPED, ()))
    for name in filter(typed, ("table", "query", "decimal", "pos_label", "scale")):
        value = "{:g}:{:g}".format(*kept(name)) if name == "scale" else str(kept(name))
        words += ["--" + name.replace("_", "-"), value]
    return [*words, "--percent"] if typed("percent") else words


def log_options_typed() -> list[str]:
    return [word for text in kept("log_option") or () for word in ("--log-option", text)]


def chosen_log() -> tuple[str | None, Options] | None:
    tool, given = kept("log"), kept("log_option") or ()
    if tool is None:
        if given:
            raise InvalidInputError("--log-option", "needs --log", hint="--log auto")
        return None
    from calibrant.logs.answer import Options

    chosen: dict[str, Any] = {}
    for text in given:
        name, equal, value = text.partition("=")
        if not equal:
            raise InvalidInputError("--log-option", "must be NAME=VALUE", f"got {text!r}")
        if name not in LOG_OPTIONS:
            raise reject_name("--log-option", name, list(LOG_OPTIONS))
        try:
            chosen[name] = float(value) if name in NUMBERS else value
        except ValueError:
            got = f"got {value!r}"
            raise InvalidInputError(f"--log-option {name}", "must be a number", got) from None
        if name == "filter" and value.isdecimal():
            chosen[name] = int(value)
    try:
        return None if tool == "auto" else tool, Options(**chosen)
    except CalibrantError as error:
        raise error.with_parts(subject=f"--log-option {error.subject}") from None


def log_hint(error: click.ClickException, files: Sequence[str]) -> str:
    """Return what to add to an error about a column that was not named, where FILE is a log."""
    missing = error.param if isinstance(error, click.MissingParameter) else None
    if missing is None or missing.name not in ("outcome", "prediction", "predictions") or not files:
        return ""
    from calibrant.logs.rows import log_files, tool_of

    with suppress(CalibrantError, OSError):
        tool = tool_of(log_files(files)[0])
        return f" Hint: --log {tool} reads this log."
    return ""


def log_summary() -> LogSummary | None:
    return click.get_current_context().meta.get(SUMMARY)


def original_name(file: str) -> str:
    return str(click.get_current_context().meta.get(ORIGINALS, {}).get(file, file))


def rows_of_log(context: click.Context, names: Sequence[str], separate: bool) -> tuple[str, ...]:
    """Write the rows of logs to one file, or one per log if the command treats its files separately."""
    chosen = chosen_log()
    if chosen is None:
        return tuple(names)
    defaults = {"outcome": "correct", "prediction": "confidence", "predictions": ["confidence"]}
    written = list(names)
    if context.command.name != "compare":  # which takes one log per model
        parts = [[name] for name in names] if separate else [list(names)]
        written = [_write_rows(context, part, *chosen, defaults) for part in parts]
    context.default_map = {**(context.default_map or {}), **defaults}
    return tuple(written)


def _write_rows(
    context: click.Context, names: list[str], tool: str | None, options: Options, defaults: dict[str, Any]
) -> str:
    """Write the rows of logs to one file; `defaults` gets the names of its columns."""
    from calibrant.logs.rows import LogRows

    rows, command = LogRows(names, tool, options), context.command.name
    path = context.with_resource(scratch_folder()) / f"{Path(names[0]).stem}.csv"
    rows.write_csv(path)
    context.meta[SUMMARY] = rows.summary
    context.meta.setdefault(ORIGINALS, {})[str(path)] = names[0]
    if rows.summary.clustered:
        defaults["clusters"] = "cluster"
    if command == "classes":
        choices = rows.summary.choices
        if len(choices) < 2:
            rule, hint = "must have probabilities of choices", "pass the log of a multiple-choice task"
            got = "got none in the first answer"
            raise InvalidInputError(f"file {names[0]!r}", rule, got, hint)
        labels = ",".join(str(k) for k in range(len(choices)))
        defaults.update(outcome="label", predictions=choices, labels=labels)
    groups = ",".join(rows.summary.groups())
    if groups and command in GROUPED:
        defaults["groups"] = groups
    print_note(*rows.summary.sentences())
    return str(path)


class CensoredColumn(str):
    """The name of an outcome that is computed from columns of times and events."""

    time: str
    event: str
    horizon: float
    strata: str | None

    @classmethod
    def of(cls, time: str, event: str, horizon: float, strata: str | None) -> CensoredColumn:
        made = cls(f"{event} by {horizon:g}")
        made.time, made.event, made.horizon, made.strata = time, event, horizon, strata
        return made

    def options(self) -> list[str]:
        strata = ["--strata", self.strata] if self.strata else []
        return ["--time", self.time, "--event", self.event, "--horizon", f"{self.horizon:g}", *strata]

    def __str__(self) -> str:
        return self  # not a plain str, which would forget the columns


def takes_censored(command: F) -> F:
    parameters: list[Any] = command.__click_params__  # type: ignore[attr-defined]
    place = next(k for k, one in enumerate(parameters) if one.name == "outcome")
    needed, parameters[place].required = parameters[place].required, False
    parameters[place:place] = [  # click reads the list from its end
        click.Option(["--strata"], type=NAME, help="Column of groups that are censored differently."),
        click.Option(["--horizon"], type=float, help="Time by which the event is predicted."),
        click.Option(["--event"], type=NAME, help="Column: 1 event, 0 censored, 2 and up other causes."),
        click.Option(["--time"], type=NAME, help="Column of censored times, in place of --outcome."),
    ]

    @functools.wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        time, event, horizon, strata = (given.pop(name) for name in ("time", "event", "horizon", "strata"))
        if time is not None:
            if given["outcome"] is not None:
                raise InvalidInputError("--time", "excludes --outcome", hint="leave --outcome out")
            if event is None or horizon is None:
                lacking = "--event" if event is None else "--horizon"
                raise InvalidInputError("--time", f"needs {lacking}", "got none")
            given["outcome"] = CensoredColumn.of(time, event, horizon, strata)
        else:
            refuse_typed("needs --time", "event", "horizon", "strata")
        if given["outcome"] is None and needed:
            raise missing_option("outcome")
        return command(*args, **given)

    return call  # type: ignore[return-value]


def outcome_table(
    path: FileNames, numbers: list[str], categories: Sequence[str], outcome: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read columns as `calibrant.io.read.read_table` does; a censored outcome is computed."""
    asked = next((name for name in numbers if isinstance(name, CensoredColumn)), None)
    if asked is None:
        return read_table(path, numbers, list(categories), outcome=outcome)
    others = [name for name in numbers if name is not asked]
    labels = [*categories, *([asked.strata] if asked.strata else [])]
    main, labels_read = read_table(path, list(dict.fromkeys([asked.time, asked.event, *others])), labels)
    time, event = (NamedColumn.of(main, name) for name in (asked.time, asked.event))
    strata = labels_read[asked.strata] if asked.strata else None
    # missing outcomes are refused or dropped with all the others
    made = censored(time, event, asked.horizon, strata=strata, missing="drop")
    print_note(str(made))
    return {**main, asked: made}, labels_read
