"""Options that several commands share: paths, names, and what the shell completes."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from calibrant.errors import InvalidInputError
from calibrant.files import check_target

ORIGINAL_FILES = "calibrant.behind"  # where the context keeps the files behind FILE
SPOOLED = "calibrant.spooled"  # where it keeps the copies of standard input
CONFIG = "calibrant.config"  # where it keeps the file of defaults
CHARTS = "charts"  # the option whose values are NAME=FILE
FILES_LOOKED_AT = 3  # for columns that complete in the shell
SEVERAL_PREDICTIONS = "calibrant compare takes several columns, and calibrant classes one for each class"
F = TypeVar("F", bound=Callable[..., Any])
Words = Callable[[click.Context], Iterable[str]]  # what the shell completes


class InputPath(click.Path):
    """An option that names a file to read; all other options of paths name files to write."""


def writes_files(option: click.Parameter) -> bool:
    if not isinstance(option, click.Option) or option.name == "config":
        return False
    path = isinstance(option.type, click.Path) and not isinstance(option.type, InputPath)
    return path or option.name == CHARTS


def check_paths(context: click.Context) -> None:
    """Refuse to write a file that is also read, even by a link, to write one twice, or where none can be."""
    known = [(Path(name), "FILE") for name in context.meta.get(ORIGINAL_FILES, ())]
    if CONFIG in context.meta:
        known.append((context.meta[CONFIG], "--config"))
    written = []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        argument = isinstance(option, click.Argument) and option.name not in ("file", "files")
        if isinstance(option.type, click.Path) and (argument or isinstance(option.type, InputPath)):
            named_by = option.human_readable_name if argument else option.opts[0]
            names = (value,) if isinstance(value, str) else value or ()
            known += [(Path(name), named_by) for name in names]
        elif writes_files(option) and (value or (value == "" and "--output" in option.opts)):
            names = [text.partition("=")[2] for text in value] if option.name == CHARTS else [value]
            written += [(name, option.opts[0]) for name in names if name or option.name != CHARTS]
    for name, named_by in written:
        for other, other_named_by in known:
            if _is_same(Path(name), other):
                rule = f"must not be the file of {other_named_by}"
                raise InvalidInputError(named_by, rule, f"got {name!r}")
        check_target(name)
        known.append((Path(name), named_by))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError, RuntimeError):  # reported when the file is opened
        return False


def columns_typed(context: click.Context) -> list[str]:
    """Return the columns of the files on the command line so far, each once, in their order."""
    given = context.params.get("file") or context.params.get("files") or ()
    files = [Path(name) for name in (*given, *context.args) if Path(name).is_file()]  # some may be values
    columns: dict[str, None] = {}
    for file in files[:FILES_LOOKED_AT]:
        with suppress(Exception):  # a half-typed name or a broken file: nothing to suggest
            columns.update(dict.fromkeys(_column_names(file)))
    return list(columns)


def _column_names(file: Path) -> Iterable[str]:
    if file.suffix == ".parquet":
        import duckdb

        with duckdb.connect(":memory:") as connection:
            return list(connection.read_parquet(str(file), hive_partitioning=False).columns)
    if file.suffix in (".sketch", ".json", ".duckdb", ".db"):
        return []
    from calibrant.io.csv_dialect import read_dialect

    return read_dialect(file).names


def _is_safe(word: str) -> bool:
    """Return whether every shell takes a word as it is: the name of a column may be a command.

    >>> _is_safe("größe_2"), _is_safe("$(reboot)"), _is_safe("a b"), _is_safe("=ls")
    (True, False, False, False)
    """
    return word[:1].isalnum() and all(mark.isalnum() or mark in "_-.,:/@%+=" for mark in word)


class Text(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """Text that `read` turns into a value, or refuses by a ValueError; `words` complete it in the shell."""

    name = "text"

    def __init__(self, read: Callable[[Any], Any], words: Words | None = None) -> None:
        self.read, self.words = read, words

    @property
    def is_list(self) -> bool:
        return self.read is _read_names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.read(value)
        except (TypeError, ValueError) as error:
            self.fail(f"{value!r} {error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        if self.words is None:
            return []
        before, comma, start = incomplete.rpartition(",") if self.is_list else ("", "", incomplete)
        words = [word for word in self.words(ctx) if not comma or word not in before.split(",")]
        begun = [word for word in words if word.startswith(start) and _is_safe(word)]
        return [CompletionItem(before + comma + word) for word in begun]


def _read_name(value: Any) -> str:
    if not str(value).strip():
        raise ValueError("is an empty name")
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise ValueError("is not UTF-8 text") from None
    return str(value)


def _read_names(value: Any) -> list[str]:
    """Split names at commas, with quotes around one that has a comma; a list (of TOML) is taken as it is."""
    try:
        cells = next(csv.reader([value], skipinitialspace=True), []) if isinstance(value, str) else value
    except csv.Error:
        raise ValueError("needs quotes around a name that has a line break") from None
    names = [cell.strip() for cell in cells]
    if not names or not all(names):
        raise ValueError("has an empty name in it")
    return names


def _read_thresholds(value: Any) -> list[float]:
    try:
        return [float(cell) for cell in (value.split(",") if isinstance(value, str) else value)]
    except (TypeError, ValueError):
        raise ValueError("must be numbers with commas between them, such as 0.1,0.2") from None


def _read_scale(value: Any) -> tuple[float, float]:
    low, _, high = str(value).partition(":")
    with suppress(ValueError):
        if float(low) < float(high) and math.isfinite(float(high) - float(low)):
            return float(low), float(high)
    raise ValueError("must be two numbers in increasing order, such as 1:10")


def _measures(context: click.Context) -> Iterable[str]:
    from calibrant.metrics.lookup import measures

    return list(measures())


def _methods(context: click.Context) -> Iterable[str]:
    from calibrant.recalibration.methods.table import recalibrations

    return ["auto", *recalibrations()]


NAME, NAMES = Text(_read_name, columns_typed), Text(_read_names, columns_typed)
MEASURE, MEASURES = Text(_read_name, _measures), Text(_read_names, _measures)
METHOD = Text(_read_name, _methods)
LIMIT = Text(str, lambda context: (f"{name}=" for name in _measures(context)))  # MEASURE=LIMIT
THRESHOLDS, SCALE = Text(_read_thresholds), Text(_read_scale)

# Kinds of options: a column, several columns, a file to write, yes or no
column_option = partial(click.option, type=NAME, metavar="COLUMN")
columns_option = partial(click.option, type=NAMES, metavar="COLUMN,COLUMN")
file_option = partial(click.option, type=click.Path(dir_okay=False))
flag = partial(click.option, is_flag=True)

# Options and arguments that several commands have
rows_in = click.argument("file", nargs=-1, required=True, metavar="FILE...", type=click.Path())
rows_if_any = click.argument("file", nargs=-1, metavar="[FILE]...", type=click.Path())
files_in = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
outcome_option = column_option("--outcome", "-y", required=True, help="Column of outcomes, 0 or 1.")
prediction_option = column_option(
    "--prediction", "-p", required=True, help="Column of predicted probabilities."
)
weight_option = column_option("--weight", "-w", help="Column of record weights.")
missing = click.option(
    "--missing", type=click.Choice(["error", "drop"]), default="error",
    help="Refuse rows with a missing value, or leave them out and count them.",
)  # fmt: skip
grouped = columns_option("--groups", help="Columns whose values are the groups to look at.")
same_option = flag("--same", help="Count rows again that the state has already counted.")
as_json = flag("--json", "json_", help="Print one JSON object on stdout.")
seed = click.option("--seed", type=int, default=0, help="Seed of everything random.")
order_option = column_option("--order", help="Column to sort the rows by.  [default: the order of the file]")


def examples(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def option_of(function: Callable[..., Any], name: str, **settings: Any) -> Callable[[F], F]:
    default = signature(function).parameters[name.lstrip("-").replace("-", "_")].default
    return click.option(name, default=default, **settings)


def column_options(command: F) -> F:
    return outcome_option(prediction_option(weight_option(missing(command))))


def columns_unless_sketch(command: F) -> F:
    """Add the same options, not required: a sketch has no columns."""
    column_options(command)
    for option in command.__click_params__:  # type: ignore[attr-defined]
        if option.name in ("outcome", "prediction"):
            option.required = False
    return command


def require_columns(outcome: str | None, prediction: str | None) -> tuple[str, str]:
    if outcome is None or prediction is None:
        raise missing_option("outcome" if outcome is None else "prediction")
    return outcome, prediction


def missing_option(name: str) -> click.MissingParameter:
    context = click.get_current_context()
    option = next(one for one in context.command.params if one.name == name)
    return click.MissingParameter(ctx=context, param=option)


def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Put what was given in the context, not among the arguments: what reads rows looks there."""
    context.meta[f"calibrant.{option.name}"] = value


kept_option = partial(click.option, expose_value=False, callback=keep)


def kept(name: str) -> Any:
    """Return what was given for an option; None where the command has no such option or it was not given."""
    return click.get_current_context().meta.get(f"calibrant.{name}")


takes_clusters = column_option(
    "--clusters", expose_value=False, callback=keep,
    help="Rows that belong together (patients of a hospital): allow for their correlation.",
)  # fmt: skip


def files_read() -> list[str]:
    return list(click.get_current_context().meta.get(ORIGINAL_FILES, ()))


def typed(option: str) -> bool:
    """Return whether an option was typed, not taken from a file of defaults."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def refuse_typed(rule: str, *options: str) -> None:
    """Refuse typed options that have no effect here; those in a file of defaults are ignored."""
    for option in filter(typed, options):
        shown = next(p for p in click.get_current_context().command.params if p.name == option).opts[0]
        raise InvalidInputError(shown, rule, hint="leave it out")


def refuse_repeated(command: click.Command, parent: click.Context, arguments: list[str]) -> None:
    """Refuse a name typed twice where the command takes one, before anything is read."""
    try:
        context = click.Context(command, parent=parent)  # click keeps the help option of the first parser
        _, _, order = command.make_parser(context).parse_args(list(arguments))
    except click.UsageError:
        return  # reported with the usage of the command when it parses them
    for option, times in Counter(order).items():
        named = isinstance(option.type, Text) and option.type.read in (_read_name, _read_names)
        if times > 1 and named and isinstance(option, click.Option) and not option.multiple:
            hint = SEVERAL_PREDICTIONS if option.name == "prediction" else "leave all but one out"
            if option.type.is_list:  # type: ignore[attr-defined]
                hint = "write several names with commas between them"
            got = f"got it {times} times"
            raise InvalidInputError(option.opts[0], "must be given once", got, hint)
