"""`calibrant merge`: sketches of shards, days or regions into the sketch of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from calibrant.cli.options import as_json
from calibrant.cli.sketch import write
from calibrant.disk import check_target
from calibrant.scale.sketch import Sketch
from calibrant.scale.sketch import merge as merged


@click.command()
@click.argument("sketches", nargs=-1, required=True, type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="File to write.")
@as_json
def merge(sketches: Sequence[str], output: str, json_: bool) -> None:
    """Add SKETCHES up; they must have the same cells and the same groups."""
    check_target(output)
    write(merged(*(Sketch.load(name) for name in sketches)), output, json_)
