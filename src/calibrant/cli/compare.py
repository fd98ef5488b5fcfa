"""`calibrant compare`: which column of predictions is better calibrated, or for which group is one better?"""

from __future__ import annotations

import click

from calibrant.cli.options import MEASURE, NAME, as_json, missing, rows_in, seed, typed
from calibrant.cli.rows import refuse_swapped
from calibrant.cli.showing import say
from calibrant.cli.tables import show_json, show_table
from calibrant.cli.test import draws_bar
from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.compare_groups import compare_groups
from calibrant.inference.compare import compare as compare_models
from calibrant.inference.comparison import Comparison
from calibrant.inputs import Names
from calibrant.records import Missing, check
from calibrant.scale.files import FileNames, read_columns, read_table


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
@click.option(
    "--groups",
    type=NAME,
    metavar="COLUMN",
    help="With one column of predictions: compare these groups of different rows (sites, leagues, seasons).",
)
@click.option(
    "--ordered",
    is_flag=True,
    help="The groups have an order, so test a trend; numbers and dates have one anyway.",
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
    groups: str | None,
    ordered: bool,
    draws: int,
    confidence: float,
    seed: int | None,
    json_: bool,
) -> None:
    """Compare two or more columns of predictions in FILE row by row, or one between --groups."""  # fmt: skip
    if groups is not None:
        _refuse_measure_of_groups(predictions)
        _compare_groups(
            file, outcome, predictions[0], weight, missing, groups, ordered, draws, confidence, seed, json_
        )
        return
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


def _refuse_measure_of_groups(predictions: tuple[str, ...]) -> None:
    if len(predictions) > 1:
        got = f"got {len(predictions)} columns"
        raise InvalidInputError(
            sentence("--groups", "compares one column of predictions", got, "compare the models one by one")
        )
    if typed("measure"):
        rule, hint = "does not apply to --groups, which compares by the odds", "leave it out"
        raise InvalidInputError(sentence("--measure", rule, hint=hint))


def _compare_groups(
    file: FileNames,
    outcome: str,
    prediction: str,
    weight: str | None,
    missing: Missing,
    groups: str,
    ordered: bool,
    draws: int,
    confidence: float,
    seed: int | None,
    json_: bool,
) -> None:
    names = Names.of_columns(outcome, prediction, weight)
    wanted = [outcome, prediction] + ([weight] if weight else [])
    numbers, labels = read_table(file, wanted, [groups])
    masses = numbers[weight] if weight else None
    refuse_swapped(check(numbers[outcome], numbers[prediction], masses, missing, names), names)
    found = compare_groups(
        numbers[outcome],
        numbers[prediction],
        labels,
        sample_weight=masses,
        ordered=ordered or None,
        missing=missing,
        confidence=confidence,
        draws=draws,
        seed=seed,
    )
    if json_:
        show_json(found.to_dict())
        return
    say(f"{found}\n")
    for sheet in (found.group_sheet(), found.pair_sheet()):
        show_table(list(sheet.columns), [[cell.text for cell in line] for line in sheet.lines])
        say()


def _show(found: Comparison) -> None:
    say(f"{found}\n")
    for sheet in (found.model_sheet(), found.pair_sheet()):
        show_table(list(sheet.columns), [[cell.text for cell in line] for line in sheet.lines])
        say()
    dropped = f" ({found.dropped:,} dropped)" if found.dropped else ""
    say(f"{found.n:,} rows{dropped}, {found.draws:,} resamples, seed {found.seed}; {found.method}")
