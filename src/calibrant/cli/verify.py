"""`calibrant verify`: recompute a published report from its data."""

from __future__ import annotations

import sys

import click

from calibrant.cli.options import as_json, column_option, examples, grouped, rows_in
from calibrant.cli.output import print_result, show_json
from calibrant.cli.rows import listed, refuse_many
from calibrant.evaluation.verify import verify as recompute
from calibrant.io.read import FileNames

DIFFERS = 1


@click.command(epilog=examples("calibrant verify report.html loans.csv"))
@click.argument("report", type=click.Path())
@rows_in
@column_option("--outcome", "-y", help="Column of outcomes, if it is not the recorded one.")
@column_option("--prediction", "-p", help="Column of predictions, if it is not the recorded one.")
@column_option("--weight", "-w", help="Column of weights, if it is not the recorded one.")
@grouped
@column_option("--id", "point", help="Column of points, if it is not the recorded one.")
@as_json
def verify(
    report: str, file: FileNames, outcome: str | None, prediction: str | None, weight: str | None,
    groups: list[str] | None, point: str | None, json_: bool,
) -> None:  # fmt: skip
    """Recompute every number of REPORT (HTML or JSON) from FILE, and name those that differ.

    Seed, options, columns and version are read from the report. Exit code 0: everything agrees. 1: something
    differs. 2: bad input or usage.
    """
    named = {"outcome": outcome, "prediction": prediction, "weight": weight, "groups": groups, "ids": point}
    refuse_many(file, hint="verify reports of fewer rows; of more they are measured from a sketch")
    found = recompute(report, tuple(listed(file)), **named)  # type: ignore[arg-type]
    if json_:
        show_json(found.to_dict())
    else:
        print_result(str(found))
    sys.exit(0 if found.verified else DIFFERS)
