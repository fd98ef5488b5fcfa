"""`calibrant apply`: recalibrate the predictions in a file of any size."""

from __future__ import annotations

import warnings
from dataclasses import asdict

import click

from calibrant.cli.options import NAME, as_json, examples, file_option, prediction_option, rows_in
from calibrant.cli.output import print_note, show_json
from calibrant.cli.rows import progress_bar, shown_name
from calibrant.formatting import pluralize
from calibrant.io.apply_file import apply_file
from calibrant.io.read import FileNames
from calibrant.recalibration.recalibrate import load_recalibration
from calibrant.recalibration.result import RecalibrationWarning


@click.command(epilog=examples("calibrant apply map.json new.csv -p p -o repaired.csv"))
@click.argument("map_file", metavar="MAP", type=click.Path())
@rows_in
@prediction_option
@click.option("--as", "into", type=NAME, default="p_recalibrated", help="Name of the new column.")
@file_option("--output", "-o", required=True, help="CSV or Parquet file to write.")
@as_json
def apply(map_file: str, file: FileNames, prediction: str, into: str, output: str, json_: bool) -> None:
    """Write FILE with one more column: its predictions recalibrated by MAP.

    MAP is what `calibrant recalibrate` wrote. All rows and columns are kept, with bounded memory;
    rows whose prediction is missing or outside [0, 1] get no value and are counted; text is refused. A map
    that reads covariates takes the columns of the same names, which are held in memory.
    """
    fitted = load_recalibration(map_file)
    with warnings.catch_warnings(record=True) as caught, progress_bar(shown_name(file)) as progress:
        warnings.simplefilter("always", RecalibrationWarning)
        done = apply_file(fitted, file, output, prediction=prediction, into=into, progress=progress)
    print_note(*(f"calibrant: {warning.message}" for warning in caught))
    if json_:
        show_json({"output": output, "column": into, **asdict(done)})
        return
    print_note(f"{pluralize(done.rows, 'row')} written to {output}, with the column {into}")
    if done.unusable:
        lack = pluralize(done.unusable, "row has", "rows have")
        print_note(f"{lack} no prediction in [0, 1] and no recalibrated one")
    if done.outside:
        seen = f"[{fitted.fit.low:g}, {fitted.fit.high:g}]"
        lie = pluralize(done.outside, "row lies", "rows lie")
        print_note(f"{lie} outside {seen}, the range the map was fitted to")
