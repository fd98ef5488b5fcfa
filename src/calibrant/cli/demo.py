"""`calibrant demo`: a realistic, reproducible data set with a known miscalibration, evaluated."""

from __future__ import annotations

import click

from calibrant.cli.evaluate import show_evaluation
from calibrant.cli.options import as_json
from calibrant.demonstration import demonstration
from calibrant.forecasts import Forecasts


@click.command()
@click.option("--rows", default=20_000, show_default=True, help="How many loans to generate.")
@click.option("--seed", default=1, show_default=True, help="Seed of the generator.")
@as_json
def demo(rows: int, seed: int, json_: bool) -> None:
    """Generate loans with predicted default probabilities and evaluate them."""
    data = demonstration(rows, seed)
    click.echo(f"calibrant demo: {rows:,} generated loans, seed {seed}. {data.truth}", err=True)
    show_evaluation(Forecasts(data.outcome, data.prediction), json_)
