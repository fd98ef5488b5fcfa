"""--time, --event and --horizon: censored times in place of an outcome, for every command that takes one."""

from __future__ import annotations

import functools
from typing import Any

import click

from calibrant.censoring import censored
from calibrant.cli.options import NAME, F
from calibrant.cli.output import print_note
from calibrant.errors import InvalidInputError, sentence
from calibrant.inputs import NamedColumn
from calibrant.io import read


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
