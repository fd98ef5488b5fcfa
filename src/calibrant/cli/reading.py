"""How commands read FILE: notation, labels, standard input, databases, logs and censored times."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from calibrant.censoring import censored
from calibrant.cli.options import BEHIND, NAME, SPOOLED, F, Scale, typed
from calibrant.cli.output import print_note
from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.files import scratch_folder
from calibrant.inputs import NamedColumn
from calibrant.io import read
from calibrant.io.read import copied_table, is_database, read_labels
from calibrant.io.session import files_behind
from calibrant.io.sources import default_notation

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
MOST_LABELS = 5  # named in an error
SELECTED = "calibrant.selected"  # where the context keeps --table and --query
TYPED = "calibrant.typed"  # where it keeps FILE as it was typed


def with_reading_options(command: click.Command) -> click.Command:
    """Add the options of reading to a command that reads files; `-` is standard input."""
    files = [p for p in command.params if isinstance(p, click.Argument) and p.name in ("file", "files")]
    known = {name for p in command.params for name in p.opts}
    if not files or "--decimal" in known:
        return command
    for argument in files:
        argument.callback = _as_files
    decimal = click.Option(
        ["--decimal"], type=click.Choice([".", ","]), default=".", expose_value=False, callback=_decimal,
        help="Decimal mark of numbers in text files.",
    )  # fmt: skip
    percent = click.Option(
        ["--percent"], is_flag=True, expose_value=False, callback=_percent,
        help="Read 12 % as 0.12; numbers without the sign stay as they are.",
    )  # fmt: skip
    table = click.Option(
        ["--table"], is_eager=True, expose_value=False, callback=_selected, help="Table of a .duckdb file."
    )
    query = click.Option(
        ["--query"], is_eager=True, expose_value=False, callback=_selected,
        help="SELECT to run on a .duckdb file, which is opened for reading alone.",
    )  # fmt: skip
    command.params += [decimal, percent, table, query, *log_options()]
    if "--outcome" in known and command.name not in OTHER_OUTCOMES:
        text = "Label of the outcome that counts as 1; the other one counts as 0."
        command.params.append(click.Option(["--pos-label"], expose_value=False, callback=_keep, help=text))
    if "--prediction" in known and command.name != "classes":
        text = "Ends of the scale of the predictions if it is not 0 to 1, such as 1:10."
        command.params.append(
            click.Option(["--scale"], type=Scale(), metavar="LOW:HIGH", expose_value=False, callback=_keep,
                         help=text)
        )  # fmt: skip
    if command.callback is not None:
        command.callback = _with_notation(command.callback)
    return command


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    context.meta[f"calibrant.{option.name}"] = value


def _with_notation(run: Callable[..., Any]) -> Callable[..., Any]:
    """Read outcomes with --pos-label and predictions with --scale while the command runs."""

    @functools.wraps(run)
    def call(**given: Any) -> Any:
        meta = click.get_current_context().meta
        label, scale = meta.get("calibrant.pos_label"), meta.get("calibrant.scale")
        notation = replace(default_notation.get(), labels=None, scale=(0.0, 1.0), scaled=())
        if label is not None:
            notation = replace(notation, labels=_labels(given, str(label)))
        if scale is not None:
            names = given.get("predictions") or given.get("prediction")
            if not names:
                raise InvalidInputError(sentence("--scale", "needs --prediction", "got none"))
            columns = (names, *names.split(",")) if isinstance(names, str) else tuple(names)
            notation = replace(notation, scale=scale, scaled=columns)
        default_notation.set(notation)
        return run(**given)

    return call


def _labels(given: Mapping[str, Any], label: str) -> tuple[str, str, str] | None:
    """Return the outcome with its label that counts as 1, as FILE writes it, and the other one."""
    column, files = given.get("outcome"), given.get("file") or given.get("files")
    if column is None:
        raise InvalidInputError(sentence("--pos-label", "needs --outcome", "got none"))
    names = (files,) if isinstance(files, str) else files or ()
    if not names or any(Path(name).suffix in (".sketch", ".json") for name in names):
        return None  # the outcomes of a sketch are numbers already
    labels = read_labels(names, column, MOST_LABELS)
    positive = next((one for one in labels if one == label or _is_same_number(one, label)), None)
    shown = ", ".join(map(repr, labels)) or "none"
    if positive is None:
        rule = f"must be one of the labels of column {column!r}"
        raise InvalidInputError(sentence("--pos-label", rule, f"got {label!r} for {shown}"))
    if len(labels) > 2:
        rule, hint = "must hold two labels where --pos-label is given", "calibrant classes takes several"
        more = "..." if len(labels) == MOST_LABELS else ""
        raise InvalidInputError(sentence(f"column {column!r}", rule, f"got {shown}{more}", hint))
    return column, positive, next((one for one in labels if one != positive), "")


def _is_same_number(one: str, other: str) -> bool:
    with suppress(ValueError):
        return float(one) == float(other)
    return one.lower() == other.lower() and one.lower() in ("true", "false")


def _selected(context: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is not None and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
        context.meta.setdefault(SELECTED, {})[option.name] = text


def _decimal(context: click.Context, option: click.Parameter, mark: str) -> None:
    default_notation.set(replace(default_notation.get(), decimal=mark))


def _percent(context: click.Context, option: click.Parameter, percent: bool) -> None:
    default_notation.set(replace(default_notation.get(), percent=percent))


def _as_files(context: click.Context, argument: click.Parameter, value: tuple[str, ...]) -> Any:
    """Put files in place of standard input and of tables in a database; a single name is not a list."""
    if context.resilient_parsing:  # the shell completes a word: nothing is read
        return value
    selected = context.meta.get(SELECTED, {})
    if selected and not any(is_database(name) for name in value):
        options = " and ".join(f"--{name}" for name in selected)
        raise InvalidInputError(
            sentence(options, "must be given with a .duckdb file", f"got {', '.join(value) or 'none'}")
        )
    _refuse_repeated(value)
    context.meta[TYPED] = value
    chosen = rows_of_log(context, value, separate=argument.name == "files")
    context.meta[BEHIND] = [file for name in value for file in files_behind(name)]
    names = tuple(_as_file(context, name, selected) for name in chosen)
    if argument.name == "files":
        return names
    return names[0] if len(names) == 1 else names or None


def rows_typed() -> list[str]:
    """Return FILE and the options that say how to read it, as typed: another command reads the same rows."""
    context = click.get_current_context()
    words = list(context.meta.get(TYPED, ()))
    for name, text in context.meta.get(SELECTED, {}).items():
        words += [f"--{name}", text]
    if typed("decimal"):
        words += ["--decimal", default_notation.get().decimal]
    if typed("pos_label"):
        words += ["--pos-label", str(context.meta["calibrant.pos_label"])]
    if typed("scale"):
        words += ["--scale", "{:g}:{:g}".format(*context.meta["calibrant.scale"])]
    return [*words, "--percent"] if typed("percent") else words


def _refuse_repeated(names: tuple[str, ...]) -> None:
    """Refuse a file that is named twice: its rows would count twice."""
    places = [Path(name).resolve() for name in names]
    again = next((name for k, name in enumerate(names) if places[k] in places[:k]), None)
    if again is not None:
        hint = "copy it under another name if you want its rows counted twice"
        raise InvalidInputError(sentence("FILE", "must name each file once", f"got {again!r} twice", hint))


def _as_file(context: click.Context, name: str, selected: Mapping[str, str]) -> str:
    if name == "-":
        return _spooled(context)
    if is_database(name):
        folder = context.with_resource(scratch_folder())
        if not selected:  # a file of defaults may say which table, whatever other files are read
            selected = context.default_map or {}
        return str(copied_table(name, folder, selected.get("table"), selected.get("query")))
    return name


def _spooled(context: click.Context) -> str:
    if sys.stdin.isatty():
        raise UnreadableFileError(sentence("standard input", "must be a pipe or a file", "got a terminal"))
    folder = context.with_resource(scratch_folder())
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    name = str(path.rename(path.with_suffix(_ending(path))))
    context.meta.setdefault(SPOOLED, []).append(name)
    return name


def _ending(path: Path) -> str:
    """Return the ending of a file's kind, by how it begins."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((ending for mark, ending in STARTS.items() if start.startswith(mark)), ".csv")


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


class CensoredColumn(str):
    """The name of an outcome that is computed from columns of times and events."""

    time: str
    event: str
    horizon: float
    strata: str | None

    @classmethod
    def of(cls, time: str, event: str, horizon: float, strata: str | None) -> CensoredColumn:
        """Return the outcome named after the columns that it comes from."""
        made = cls(f"{event} by {horizon:g}")
        made.time, made.event, made.horizon, made.strata = time, event, horizon, strata
        return made

    def options(self) -> list[str]:
        """Return the options that name it on the command line."""
        strata = ["--strata", self.strata] if self.strata else []
        return ["--time", self.time, "--event", self.event, "--horizon", f"{self.horizon:g}", *strata]

    def __str__(self) -> str:
        return self  # not a plain str, which would forget the columns


def takes_censored(command: F) -> F:
    """Add --time, --event, --horizon and --strata after --outcome, which they can replace."""
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
        given["outcome"] = _outcome(given["outcome"], time, event, horizon, strata, needed)
        return command(*args, **given)

    return call  # type: ignore[return-value]


def _outcome(
    outcome: str | None,
    time: str | None,
    event: str | None,
    horizon: float | None,
    strata: str | None,
    needed: bool,
) -> str | None:
    """Return the outcome that was asked for: a column, or one computed from censored times."""
    if time is None:
        for name, value in (("--event", event), ("--horizon", horizon), ("--strata", strata)):
            if value is not None:
                raise InvalidInputError(sentence(name, "needs --time", hint="name the column of times"))
        if outcome is None and needed:
            raise click.UsageError("Missing option '--outcome' / '-y'.", click.get_current_context())
        return outcome
    if outcome is not None:
        raise InvalidInputError(sentence("--time", "excludes --outcome", hint="leave --outcome out"))
    if event is None or horizon is None:
        lacking = "--event" if event is None else "--horizon"
        raise InvalidInputError(sentence("--time", f"needs {lacking}", "got none"))
    return CensoredColumn.of(time, event, horizon, strata)


def outcome_table(
    path: read.FileNames, numbers: list[str], categories: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read columns as `calibrant.io.read.read_table` does; a censored outcome is computed."""
    asked = next((name for name in numbers if isinstance(name, CensoredColumn)), None)
    if asked is None:
        return read.read_table(path, numbers, categories)
    others = [name for name in numbers if name is not asked]
    labels = [*categories, *([asked.strata] if asked.strata else [])]
    main, labels_read = read.read_table(path, list(dict.fromkeys([asked.time, asked.event, *others])), labels)
    made = censored(
        NamedColumn(main[asked.time], f"column {asked.time!r}"),
        NamedColumn(main[asked.event], f"column {asked.event!r}"),
        asked.horizon,
        strata=labels_read[asked.strata] if asked.strata else None,
        missing="drop",  # missing outcomes are refused or dropped with all the others
    )
    print_note(str(made))
    return {**main, asked: made}, labels_read


def outcome_columns(path: read.FileNames, names: list[str]) -> dict[str, Any]:
    """Read columns of numbers as `calibrant.io.read.read_columns` does; a censored outcome is computed."""
    if any(isinstance(name, CensoredColumn) for name in names):
        return outcome_table(path, names, [])[0]
    return read.read_columns(path, names)
