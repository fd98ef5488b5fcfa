"""`calibrant compare`: which column of predictions is better calibrated?"""

from __future__ import annotations

import click

from calibrant.cli.options import MEASURE, NAME, as_json, missing, rows_in, seed
from calibrant.cli.rows import refuse_swapped
from calibrant.cli.showing import say
from calibrant.cli.tables import show_json, show_table
from calibrant.cli.test import draws_bar
from calibrant.errors import InvalidInputError, sentence
from calibrant.inference.compare import compare as compare_models
from calibrant.inference.comparison import Comparison
from calibrant.inputs import Names
from calibrant.records import Missing, check
from calibrant.scale.files import FileNames, read_columns


@click.command()
@rows_in
@click.option("--outcome", "-y", type=NAME, required=True, help="Column of outcomes, 0 or 1.")
@click.option(
    "--prediction",
    "-p",
    "predictions",
    type=NAME,
    required=True,
    multiple=True,
    help="Column of predicted probabilities; give it once for each model.",
)
@click.option("--weight", "-w", type=NAME, help="Column of record weights.")
@missing
@click.option(
    "--measure",
    "-m",
    type=MEASURE,
    default="atb",
    show_default=True,
    help="Measure; truthful ones rank fairly.",
)
@click.option("--draws", default=999, show_default=True, help="Resamples of the rows.")
@click.option("--confidence", default=0.95, show_default=True, help="Of the intervals.")
@seed
@as_json
def compare(
    file: FileNames,
    outcome: str,
    predictions: tuple[str, ...],
    weight: str | None,
    missing: Missing,
    measure: str,
    draws: int,
    confidence: float,
    seed: int | None,
    json_: bool,
) -> None:
    """Compare the calibration of two or more columns of predictions in FILE, row by row."""  # fmt: skip
    for name in predictions:
        if predictions.count(name) > 1:
            rule, again = "must be a different column each time", predictions.count(name)
            raise InvalidInputError(sentence("--prediction", rule, f"got {name!r} {again} times"))
    named = [Names.of_columns(outcome, name, weight) for name in predictions]
    read = read_columns(file, [outcome, *predictions, *([weight] if weight else [])])
    for name, names in zip(predictions, named, strict=True):  # here, so that errors name the columns
        refuse_swapped(
            check(read[outcome], read[name], read[weight] if weight else None, missing, names), names
        )
    with draws_bar() as progress:
        found = compare_models(
            read[outcome],
            {name: read[name] for name in predictions},
            sample_weight=read[weight] if weight else None,
            missing=missing,
            measure=measure,
            draws=draws,
            confidence=confidence,
            seed=seed,
            progress=progress,
        )
    if json_:
        show_json(found.to_dict())
    else:
        _show(found)


def _show(found: Comparison) -> None:
    say(f"{found}\n")
    for sheet in (found.model_sheet(), found.pair_sheet()):
        show_table(list(sheet.columns), [[cell.text for cell in line] for line in sheet.lines])
        say()
    dropped = f" ({found.dropped:,} dropped)" if found.dropped else ""
    say(f"{found.n:,} rows{dropped}, {found.draws:,} resamples, seed {found.seed}; {found.method}")
