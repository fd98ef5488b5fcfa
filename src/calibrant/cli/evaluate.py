"""`calibrant evaluate`: every measure of a file of predictions and outcomes."""

from __future__ import annotations

import warnings

import click

from calibrant.cli.options import as_json, columns
from calibrant.cli.tables import number, show_json, show_table
from calibrant.errors import TooFewRecordsError
from calibrant.forecasts import Forecasts, Missing
from calibrant.measures.level_sets import LevelSetWarning, singletons
from calibrant.measures.registry import measure, measures
from calibrant.results import Measurement
from calibrant.scale.files import read_forecasts


@click.command()
@click.argument("file")
@columns
@as_json
def evaluate(
    file: str, outcome: str, prediction: str, weight: str | None, missing: Missing, json_: bool
) -> None:
    """Measure the calibration of the predictions in FILE (CSV or Parquet)."""
    forecasts = read_forecasts(file, outcome=outcome, prediction=prediction, weight=weight, missing=missing)
    show_evaluation(forecasts, json_)


def show_evaluation(forecasts: Forecasts, json_: bool) -> None:
    """Print every measure that the data supports."""
    taken = take_all(forecasts)
    if json_:
        data = {"n": forecasts.n, "levels": forecasts.levels, "dropped": forecasts.dropped}
        show_json({**data, "measures": [m.to_dict() for m in taken]})
        return
    dropped = f", {forecasts.dropped:,} rows with missing values left out" if forecasts.dropped else ""
    click.echo(
        f"{forecasts.n:,} records, {forecasts.levels:,} distinct predictions{dropped}; mean prediction "
        f"{forecasts.mean_prediction:.4f}, mean outcome {forecasts.base_rate:.4f}"
    )
    show_table(
        ["measure", "value", "meaning"],
        [[m.name, number(m.value), measures()[m.name].meaning] for m in taken],
    )


def take_all(forecasts: Forecasts) -> list[Measurement]:
    """Take every measure of the registry that means something on these forecasts."""
    taken = []
    for row in measures().values():
        if row.needs_level_sets and singletons(forecasts):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LevelSetWarning)
            try:
                taken.append(measure(forecasts, row.name))
            except TooFewRecordsError:
                continue
    return taken
