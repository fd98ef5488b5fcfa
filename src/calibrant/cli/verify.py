"""`calibrant verify`: recompute a published report from its data."""

from __future__ import annotations

import sys

import click

from calibrant.cli import rows
from calibrant.cli.exit_codes import FAILED
from calibrant.cli.options import as_json, column_option, examples, grouped, rows_in
from calibrant.cli.output import print_result, show_json
from calibrant.cli.reading import log_summary
from calibrant.evaluation.verify import verify_report
from calibrant.io.read import FileNames


@click.command(
    epilog=examples(
        "calibrant verify report.html loans.csv",
        "calibrant verify monday.html monday.sketch",
        "calibrant verify model.html samples.jsonl --log lm-eval",
    )
)
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
    sketch = rows.stored_sketch(file)
    if sketch is None:
        rows.refuse_many(file, hint="verify reports of fewer rows; of more they are measured from a sketch")
    groups_of = rows.group_dicts(sketch) if sketch is not None and sketch.by else ()
    data = sketch or tuple(rows.listed(file))
    found = verify_report(report, data, named, log_summary(), groups_of)
    if json_:
        show_json(found.to_dict())
    else:
        print_result(str(found))
    sys.exit(0 if found.verified else FAILED)
