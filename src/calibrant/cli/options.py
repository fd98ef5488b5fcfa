"""Options that several verbs share, so that they read and behave the same everywhere."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any, TypeVar

import click

from calibrant.measures.registry.lookup import measures

F = TypeVar("F", bound=Callable[..., Any])


class Name(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """The name of a column: any text that is not blank; columns of the files typed complete in the shell."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is."""
        if not str(value).strip():
            self.fail(f"{value!r} is an empty name", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the columns whose names begin so."""
        from calibrant.cli.completion import columns_typed, starting_with

        return starting_with(incomplete, columns_typed(ctx))


class NameList(click.ParamType):  # type: ignore[type-arg]
    """Several names with commas between them; quotes around a name that has a comma itself."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Split the text as a line of CSV; a list (of a TOML file) is taken as it is."""
        if isinstance(value, (list, tuple)):
            cells = list(value)
        else:
            cells = next(csv.reader([str(value)], skipinitialspace=True), [])
        names = [cell.strip() for cell in cells]
        if not names or not all(names):
            self.fail(f"{value!r} has an empty name in it", param, ctx)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the columns whose names begin so; after a comma the next one."""
        from calibrant.cli.completion import columns_typed, next_of_list

        return next_of_list(incomplete, columns_typed(ctx))


class MeasureNames(NameList):
    """Names of measures, which complete in the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the measures whose names begin so; after a comma the next one."""
        from calibrant.cli.completion import next_of_list

        return next_of_list(incomplete, measures())


class MeasureName(Name):
    """The name of a measure, which completes in the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the measures whose names begin so."""
        from calibrant.cli.completion import starting_with

        return starting_with(incomplete, measures())


class Limit(MeasureName):
    """MEASURE=LIMIT, taken apart by whoever holds the limits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the measures whose names begin so, ready for the limit."""
        from calibrant.cli.completion import starting_with

        return [] if "=" in incomplete else starting_with(incomplete, (f"{name}=" for name in measures()))


class MethodName(Name):
    """The name of a recalibration method, which completes in the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the methods whose names begin so."""
        from calibrant.cli.completion import starting_with
        from calibrant.recalibration.table import recalibrations

        return starting_with(incomplete, ["auto", *recalibrations()])


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


NAME, NAMES = Name(), NameList()
MEASURE, MEASURES, LIMIT = MeasureName(), MeasureNames(), Limit()
METHOD = MethodName()


def rows_in(verb: F) -> F:
    """Add FILE..., the files of rows that make one data set; see `reading` for what they may be."""
    return click.argument("file", nargs=-1, required=True, metavar="FILE...", type=click.Path())(verb)


def rows_if_any(verb: F) -> F:
    """Add [FILE]... to a verb that can do without."""
    return click.argument("file", nargs=-1, metavar="[FILE]...", type=click.Path())(verb)


def typed(option: str) -> bool:
    """Return whether an option stands on the command line itself, not in a file of defaults."""
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def columns(verb: F) -> F:
    """Add --outcome, --prediction, --weight and --missing."""
    return _columns(verb, required=True)


def columns_unless_sketch(verb: F) -> F:
    """Add the same options; a sketch has columns no more, so the verb checks that a file of rows has them."""
    return _columns(verb, required=False)


def require_columns(outcome: str | None, prediction: str | None) -> tuple[str, str]:
    """Return the names of both columns, which a file of rows needs."""
    if outcome is None or prediction is None:
        name = "'--outcome' / '-y'" if outcome is None else "'--prediction' / '-p'"
        raise click.UsageError(f"Missing option {name}.", click.get_current_context())
    return outcome, prediction


def _columns(verb: F, required: bool) -> F:
    for option in (
        missing,
        click.option("--weight", "-w", type=NAME, help="Column of record weights."),
        click.option("--prediction", "-p", type=NAME, required=required,
                     help="Column of predicted probabilities."),
        click.option("--outcome", "-y", type=NAME, required=required, help="Column of outcomes, 0 or 1."),
    ):  # fmt: skip
        verb = option(verb)
    return verb


def missing(verb: F) -> F:
    """Add --missing."""
    return click.option(
        "--missing",
        type=click.Choice(["error", "drop"]),
        default="error",
        show_default=True,
        help="Refuse rows with a missing value, or leave them out and count them.",
    )(verb)


def grouped(verb: F) -> F:
    """Add --groups."""
    return click.option(
        "--groups", type=NAMES, metavar="COLUMN,COLUMN", help="Columns whose values are groups to look at."
    )(verb)


def as_json(verb: F) -> F:
    """Add --json."""
    return click.option("--json", "json_", is_flag=True, help="Print one JSON object on stdout.")(verb)


def seed(verb: F) -> F:
    """Add --seed."""
    return click.option("--seed", type=int, help="Seed of everything random; drawn and printed when absent.")(
        verb
    )
