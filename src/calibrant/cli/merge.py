"""`calibrant merge`: sketches of shards, days or regions into the sketch of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from calibrant.cli.options import as_json, examples
from calibrant.cli.rows import different_sketches
from calibrant.cli.sketch import write
from calibrant.files import check_target
from calibrant.sketch.sketch import Sketch
from calibrant.sketch.sketch import merge as merged


@click.command(epilog=examples("calibrant merge monday.sketch tuesday.sketch -o week.sketch"))
@click.argument("sketches", nargs=-1, required=True, type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="File to write.")
@click.option("--same", is_flag=True, help="Add sketches up even if two hold the same records.")
@as_json
def merge(sketches: Sequence[str], output: str, same: bool, json_: bool) -> None:
    """Add SKETCHES up; they must have the same cells and the same groups.

    Two sketches with the same contents are refused, and so is the sketch of a day with that of a month that
    contains it: the same day would count twice.
    """
    check_target(output)
    hint = "leave one out; --same adds them up all the same"
    loaded = [Sketch.load(name) for name in sketches] if same else different_sketches(sketches, hint)
    write(merged(*loaded), output, json_)
