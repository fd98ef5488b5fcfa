"""`calibrant apply`: recalibrate the predictions in a file of any size."""

from __future__ import annotations

from dataclasses import asdict

import click

from calibrant.cli.options import as_json
from calibrant.cli.sketched import progress_bar
from calibrant.cli.tables import show_json
from calibrant.recalibration.storage import load_recalibration
from calibrant.scale.apply_file import apply_file


@click.command()
@click.argument("map_file", metavar="MAP")
@click.argument("file")
@click.option("--prediction", "-p", required=True, help="Column of predicted probabilities.")
@click.option("--as", "into", default="p_recalibrated", show_default=True, help="Name of the new column.")
@click.option(
    "--output", "-o", required=True, type=click.Path(dir_okay=False), help="CSV or Parquet file to write."
)
@as_json
def apply(map_file: str, file: str, prediction: str, into: str, output: str, json_: bool) -> None:
    """Write FILE with one more column: its predictions recalibrated by MAP.

    MAP is what `calibrant recalibrate` wrote. All rows and columns are kept, in memory that stays bounded;
    rows whose prediction is missing or outside [0, 1] get no value and are counted.
    """
    fitted = load_recalibration(map_file)
    with progress_bar(file) as progress:
        done = apply_file(fitted, file, output, prediction=prediction, into=into, progress=progress)
    if json_:
        show_json({"output": output, "column": into, **asdict(done)})
        return
    click.echo(f"{done.rows:,} rows written to {output}", err=True)
    if done.unusable:
        click.echo(f"{done.unusable:,} rows have no prediction in [0, 1]: no value for them", err=True)
    if done.outside:
        seen = f"[{fitted.fit.low:g}, {fitted.fit.high:g}]"
        click.echo(f"{done.outside:,} rows lie outside {seen}, the range the map was fitted to", err=True)
