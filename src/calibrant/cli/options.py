"""Options that several verbs share, so that they read and behave the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import click

from calibrant.cli.option_types import Limit, MeasureName, MeasureNames, MethodName, Name, NameList
from calibrant.errors import InvalidInputError, sentence

F = TypeVar("F", bound=Callable[..., Any])
BEHIND = "calibrant.behind"  # where the context keeps the files behind FILE

NAME, NAMES = Name(), NameList()
MEASURE, MEASURES, LIMIT = MeasureName(), MeasureNames(), Limit()
METHOD = MethodName()


def option_of(function: Callable[..., Any], flag: str, **settings: Any) -> Callable[[F], F]:
    """Return an option whose default is that of the function's parameter of the same name."""
    default = signature(function).parameters[flag.lstrip("-").replace("-", "_")].default
    return click.option(flag, default=default, show_default=True, **settings)


def files_read() -> list[str]:
    """Return the files behind FILE as they were typed: those of a glob, and the database of a table."""
    return list(click.get_current_context().meta.get(BEHIND, ()))


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


def refuse_typed(rule: str, *options: str) -> None:
    """Refuse options that mean nothing beside the others; those in a file of defaults may wait their turn."""
    for option in options:
        if typed(option):
            shown = next(p for p in click.get_current_context().command.params if p.name == option).opts[0]
            raise InvalidInputError(sentence(shown, rule, hint="leave it out"))


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
        _outcome(required),
    ):  # fmt: skip
        verb = option(verb)
    return verb


def outcome_option(verb: F) -> F:
    """Add --outcome alone, for verbs whose predictions are another matter, or that have none."""
    return _outcome(True)(verb)


def _outcome(required: bool) -> Callable[[F], F]:
    return click.option("--outcome", "-y", type=NAME, required=required, help="Column of outcomes, 0 or 1.")


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
