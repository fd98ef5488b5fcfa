"""Options that several verbs share, so that they read and behave the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Name(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """The name of a column, or several with commas; not empty."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is."""
        text = str(value)
        if not all(part.strip() for part in text.split(",")):
            self.fail(f"{text!r} has an empty name in it", param, ctx)
        return text


NAME = Name()


def columns(verb: F) -> F:
    """Add --outcome, --prediction, --weight and --missing."""
    return _columns(verb, required=True)


def columns_unless_sketch(verb: F) -> F:
    """Add the same options; a sketch has columns no more, so the verb checks that a file of rows has them."""
    return _columns(verb, required=False)


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
        "--groups", type=NAME, metavar="COLUMN,COLUMN", help="Columns whose values are groups to look at."
    )(verb)


def as_json(verb: F) -> F:
    """Add --json."""
    return click.option("--json", "json_", is_flag=True, help="Print one JSON object on stdout.")(verb)


def seed(verb: F) -> F:
    """Add --seed."""
    return click.option("--seed", type=int, help="Seed of everything random; drawn and printed when absent.")(
        verb
    )
