"""Options that several commands share: paths, names, and what the shell completes."""

from __future__ import annotations

import csv
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from calibrant.errors import InvalidInputError, sentence

BEHIND = "calibrant.behind"  # where the context keeps the files behind FILE
SPOOLED = "calibrant.spooled"  # where it keeps the copies of standard input
CONFIG = "calibrant.config"  # where it keeps the file of defaults
CHARTS = "charts"  # the option whose values are NAME=FILE


class InputPath(click.Path):
    """An option that names a file to read; all other options of paths name files to write."""


class _Use(NamedTuple):
    """A path, and the option or argument that names it."""

    path: Path
    named_by: str
    typed: str = ""


def writes_files(option: click.Parameter) -> bool:
    """Return whether an option names files that the command writes."""
    if not isinstance(option, click.Option) or option.name == "config":
        return False
    path = isinstance(option.type, click.Path) and not isinstance(option.type, InputPath)
    return path or option.name == CHARTS


def check_paths(context: click.Context) -> None:
    """Refuse to write a file that the command also reads, or to write one file twice.

    Links and hard links count as the file they lead to. A state is read and written by the same option.
    """
    read = list(_paths_read(context))
    written: list[_Use] = []
    for use in _paths_written(context):
        for other in (*read, *written):
            if _is_same(use.path, other.path):
                rule = f"must not be the file of {other.named_by}"
                raise InvalidInputError(sentence(use.named_by, rule, f"got {use.typed!r}"))
        written.append(use)


def _paths_read(context: click.Context) -> Iterator[_Use]:
    for name in context.meta.get(BEHIND, ()):
        yield _Use(Path(name), "FILE")
    if CONFIG in context.meta:
        yield _Use(context.meta[CONFIG], "--config")
    for option in context.command.params:
        value = context.params.get(option.name or "")
        argument = isinstance(option, click.Argument) and option.name not in ("file", "files")
        if isinstance(option.type, click.Path) and (argument or isinstance(option.type, InputPath)):
            for name in (value,) if isinstance(value, str) else value or ():
                yield _Use(Path(name), option.opts[0] if not argument else option.human_readable_name)


def _paths_written(context: click.Context) -> Iterator[_Use]:
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if writes_files(option) and value:
            names = [text.partition("=")[2] for text in value] if option.name == CHARTS else [value]
            yield from (_Use(Path(name), option.opts[0], name) for name in names if name)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError, RuntimeError):  # reported when the file is opened
        return False


FILES_LOOKED_AT = 3


def columns_typed(context: click.Context) -> list[str]:
    """Return the columns of the files on the command line so far, each once, in their order."""
    names: dict[str, None] = {}
    for file in list(_files(context))[:FILES_LOOKED_AT]:
        with suppress(Exception):  # a half-typed name or a broken file: nothing to suggest
            names.update(dict.fromkeys(_column_names(file)))
    return list(names)


def _is_safe(word: str) -> bool:
    """Return whether every shell takes a word as it is: the name of a column may be a command.

    >>> _is_safe("größe_2"), _is_safe("$(reboot)"), _is_safe("a b"), _is_safe("=ls")
    (True, False, False, False)
    """
    return word[:1].isalnum() and all(mark.isalnum() or mark in "_-.,:/@%+=" for mark in word)


def _files(context: click.Context) -> Iterator[Path]:
    """Yield the files among the arguments; click cannot yet tell them from option values here."""
    known = [context.params.get(key) for key in ("file", "files")]
    given = [name for names in known if names for name in ([names] if isinstance(names, str) else names)]
    for name in (*given, *context.args):
        if Path(name).is_file():
            yield Path(name)


def _column_names(file: Path) -> Iterable[str]:
    """Return the names in the header or schema of a file; a sketch has no columns."""
    if file.suffix == ".parquet":
        import duckdb

        with duckdb.connect(":memory:") as connection:
            relation = connection.read_parquet(str(file), hive_partitioning=False)
            return list(relation.columns)
    if file.suffix in (".sketch", ".json", ".duckdb", ".db"):
        return []
    from calibrant.io.csv_dialect import read_dialect

    return read_dialect(file).names


Words = Callable[[click.Context], Iterable[str]]  # what the shell completes


class Name(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """The name of a column, or of what else completes in the shell: any text that is not blank."""

    name = "text"

    def __init__(self, words: Words | None = None) -> None:
        self.words = words or columns_typed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is."""
        if not str(value).strip():
            self.fail(f"{value!r} is an empty name", param, ctx)
        try:
            str(value).encode()
        except UnicodeEncodeError:
            self.fail(f"{value!r} is not UTF-8 text", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the words that begin so."""
        return _completed("", incomplete, self.words(ctx))


class NameList(click.ParamType):  # type: ignore[type-arg]
    """Several names with commas between them; quotes around a name that has a comma itself."""

    name = "text"

    def __init__(self, words: Words | None = None) -> None:
        self.words = words or columns_typed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Split the text as a line of CSV; a list (of a TOML file) is taken as it is."""
        cells = value
        try:
            if not isinstance(value, list | tuple):
                cells = next(csv.reader([str(value)], skipinitialspace=True), [])
        except csv.Error:
            self.fail(f"{value!r} needs quotes around a name that has a line break", param, ctx)
        names = [cell.strip() for cell in cells]
        if not names or not all(names):
            self.fail(f"{value!r} has an empty name in it", param, ctx)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the words that begin so, without those typed already; after a comma the next one."""
        before, comma, start = incomplete.rpartition(",")
        taken = before.split(",") if comma else []
        return _completed(before + comma, start, [word for word in self.words(ctx) if word not in taken])


class Limit(Name):
    """MEASURE=LIMIT, split by the command that checks the limits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        return str(value)


def _completed(before: str, start: str, words: Iterable[str]) -> list[CompletionItem]:
    """Return the words that begin so, behind what was typed before."""
    return [CompletionItem(before + word) for word in words if word.startswith(start) and _is_safe(word)]


class Thresholds(click.ParamType):  # type: ignore[type-arg]
    """Several numbers with commas between them."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        """Read the numbers; a list (of a TOML file) is taken as it is."""
        cells = value if isinstance(value, (list, tuple)) else str(value).split(",")
        try:
            return [float(cell) for cell in cells]
        except (TypeError, ValueError):
            self.fail(f"{value!r} must be numbers with commas between them, such as 0.1,0.2", param, ctx)


class Scale(click.ParamType):  # type: ignore[type-arg]
    """The ends of a scale of scores, such as 1:10."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the two numbers."""
        low, _, high = str(value).partition(":")
        try:
            ends = float(low), float(high)
        except ValueError:
            ends = 0.0, 0.0
        if not (ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])):
            self.fail(f"{value!r} must be two numbers in increasing order, such as 1:10", param, ctx)
        return ends


F = TypeVar("F", bound=Callable[..., Any])


def examples(*lines: str) -> str:
    """Return the end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _measures(context: click.Context) -> Iterable[str]:
    from calibrant.metrics.lookup import measures

    return list(measures())


def _methods(context: click.Context) -> Iterable[str]:
    from calibrant.recalibration.methods.table import recalibrations

    return ["auto", *recalibrations()]


NAME, NAMES, METHOD = Name(), NameList(), Name(_methods)
MEASURE, MEASURES = Name(_measures), NameList(_measures)
LIMIT = Limit(lambda context: (f"{name}=" for name in _measures(context)))


def option_of(function: Callable[..., Any], flag: str, **settings: Any) -> Callable[[F], F]:
    """Return an option whose default is that of the function's parameter of the same name."""
    default = signature(function).parameters[flag.lstrip("-").replace("-", "_")].default
    return click.option(flag, default=default, show_default=True, **settings)


def files_read() -> list[str]:
    """Return the files behind FILE as they were typed: those of a glob, and the database of a table."""
    return list(click.get_current_context().meta.get(BEHIND, ()))


def rows_in(command: F) -> F:
    """Add FILE..., the files of rows that make one data set; see `reading` for what they may be."""
    return click.argument("file", nargs=-1, required=True, metavar="FILE...", type=click.Path())(command)


def rows_if_any(command: F) -> F:
    """Add [FILE]... to a command that can do without."""
    return click.argument("file", nargs=-1, metavar="[FILE]...", type=click.Path())(command)


def typed(option: str) -> bool:
    """Return whether an option was typed, not taken from a file of defaults."""
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def refuse_typed(rule: str, *options: str) -> None:
    """Refuse typed options that have no effect with the others; those in a file of defaults are ignored."""
    for option in options:
        if typed(option):
            shown = next(p for p in click.get_current_context().command.params if p.name == option).opts[0]
            raise InvalidInputError(sentence(shown, rule, hint="leave it out"))


def columns(command: F) -> F:
    """Add --outcome, --prediction, --weight and --missing."""
    return _columns(command, required=True)


def columns_unless_sketch(command: F) -> F:
    """Add the same options, not required: a sketch has no columns."""
    return _columns(command, required=False)


def require_columns(outcome: str | None, prediction: str | None) -> tuple[str, str]:
    """Return the names of both columns, which a file of rows needs."""
    if outcome is None or prediction is None:
        name = "'--outcome' / '-y'" if outcome is None else "'--prediction' / '-p'"
        raise click.UsageError(f"Missing option {name}.", click.get_current_context())
    return outcome, prediction


def _columns(command: F, required: bool) -> F:
    for option in (
        missing,
        click.option("--weight", "-w", type=NAME, help="Column of record weights."),
        click.option("--prediction", "-p", type=NAME, required=required,
                     help="Column of predicted probabilities."),
        _outcome(required),
    ):  # fmt: skip
        command = option(command)
    return command


def outcome_option(command: F) -> F:
    """Add --outcome alone, for commands whose predictions are another matter, or that have none."""
    return _outcome(True)(command)


def _outcome(required: bool) -> Callable[[F], F]:
    return click.option("--outcome", "-y", type=NAME, required=required, help="Column of outcomes, 0 or 1.")


def missing(command: F) -> F:
    """Add --missing."""
    return click.option(
        "--missing",
        type=click.Choice(["error", "drop"]),
        default="error",
        show_default=True,
        help="Refuse rows with a missing value, or leave them out and count them.",
    )(command)


def grouped(command: F) -> F:
    """Add --groups."""
    return click.option(
        "--groups", type=NAMES, metavar="COLUMN,COLUMN", help="Columns whose values are groups to look at."
    )(command)


def as_json(command: F) -> F:
    """Add --json."""
    return click.option("--json", "json_", is_flag=True, help="Print one JSON object on stdout.")(command)


def seed(command: F) -> F:
    """Add --seed."""
    return click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")(
        command
    )


SEVERAL_PREDICTIONS = "calibrant compare takes several columns, and calibrant classes one for each class"


CLUSTERS = "calibrant.clusters"  # where the context keeps the column that --clusters names


def takes_clusters(command: F) -> F:
    """Add --clusters, which reading rows picks up from the context."""

    @functools.wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        click.get_current_context().meta[CLUSTERS] = given.pop("clusters")
        return command(*args, **given)

    text = "Rows that belong together (patients of a hospital): allow for their correlation."
    return click.option("--clusters", type=NAME, metavar="COLUMN", help=text)(call)  # type: ignore[return-value]


def chosen_clusters() -> str | None:
    """Return the column that --clusters names; None where the command has no such option or none is given."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(CLUSTERS)


def refuse_repeated(command: click.Command, parent: click.Context, arguments: list[str]) -> None:
    """Refuse a name typed twice where the command takes one, before anything is read."""
    try:
        context = click.Context(command, parent=parent)  # click keeps the help option of the first parser
        _, _, order = command.make_parser(context).parse_args(list(arguments))
    except click.UsageError:
        return  # reported with the usage of the command when it parses them
    for option, times in Counter(order).items():
        if times > 1 and isinstance(option, click.Option) and not option.multiple:
            _refuse(option, times)


def _refuse(option: click.Option, times: int) -> None:
    if isinstance(option.type, NameList):
        hint = "write several names with commas between them"
    elif isinstance(option.type, Name):
        hint = SEVERAL_PREDICTIONS if option.name == "prediction" else "leave all but one out"
    else:
        return
    raise InvalidInputError(sentence(option.opts[0], "must be given once", f"got it {times} times", hint))
