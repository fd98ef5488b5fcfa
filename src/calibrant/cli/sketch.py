"""`calibrant sketch`: files of any size into one small file; `calibrant merge` adds such files up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from calibrant.cli.options import as_json, column_options, columns_option, examples, file_option, flag
from calibrant.cli.output import one_line, print_result, show_json
from calibrant.cli.rows import different_sketches, progress_bar, refuse_swapped
from calibrant.inputs import InputNames
from calibrant.io.read import refuse_same_contents
from calibrant.io.session import resolve_paths
from calibrant.sketch.aggregate import MAX_GROUPS
from calibrant.sketch.cells import CELLS
from calibrant.sketch.sketch import Sketch, merge


@click.command(epilog=examples("calibrant sketch 'clicks/*.parquet' -y y -p p --by country -o clicks.sketch"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@column_options
@file_option("--output", "-o", required=True, help="File to write.")
@columns_option("--by", help="Columns whose values are groups: a sketch of each.")
@click.option("--cells", type=int, default=CELLS, help="Cells between 0 and 1.")
@click.option("--max-groups", type=click.IntRange(min=1), default=MAX_GROUPS,
 help="Refuse more groups than that.")  # fmt: skip
@click.option("--invalid", type=click.Choice(["error", "drop"]), default="error",
 help="Refuse values outside [0, 1], or leave them out and count them.")  # fmt: skip
@flag("--same", help="Count files even if two have the same contents.")
@as_json
def sketch(files: Sequence[str], output: str, same: bool, json_: bool, **options: Any) -> None:
    """Summarize FILES (CSV or Parquet, names or globs) into one sketch, with bounded memory.

    Evaluate it with `calibrant evaluate day.sketch`, add days up with `calibrant merge`. The output appears
    complete or not at all; a name that ends in .parquet is written as Parquet. Two files of the same contents
    are refused: the same day would count twice.
    """
    read = resolve_paths(files)  # refuses a file that is named twice
    if not same:
        refuse_same_contents(read, options["outcome"])
    parts = []
    for file in files:
        with progress_bar(file) as progress:
            parts.append(Sketch.from_file(file, progress=progress, **options))
    made = merge(*parts)
    if made.n:
        known = made.forecasts()
        certain = not np.any((known.values > 0) & (known.values < 1))
        names = InputNames.of_columns(options["outcome"], options["prediction"])
        refuse_swapped(certain and not known.binary, names)
    write(made, output, json_)


def write(made: Sketch, output: str, json_: bool) -> None:
    made.save(output)
    if json_:
        facts = {"output": output, "n": made.n, "cells": made.cells, "groups": len(made.groups)}
        show_json({**facts, "dropped": made.dropped, "rejects": dict(made.rejects)})
    else:
        print_result(one_line(f"{output}: {made}"))


@click.command("merge", epilog=examples("calibrant merge monday.sketch tuesday.sketch -o week.sketch"))
@click.argument("sketches", nargs=-1, required=True, type=click.Path())
@file_option("--output", "-o", required=True, help="File to write.")
@flag("--same", help="Add sketches up even if two hold the same records.")
@as_json
def add_sketches(sketches: Sequence[str], output: str, same: bool, json_: bool) -> None:
    """Add SKETCHES up; they must have the same cells and the same groups.

    Two sketches with the same contents are refused, and so is the sketch of a day with that of a month that
    contains it: the same day would count twice.
    """
    hint = "leave one out; --same adds them up anyway"
    loaded = [Sketch.load(name) for name in sketches] if same else different_sketches(sketches, hint)
    write(merge(*loaded), output, json_)
