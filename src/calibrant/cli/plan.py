"""`calibrant plan`: how many labelled records are needed, or what a number of them can show."""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli.options import (
    MEASURE,
    NAME,
    as_json,
    examples,
    missing,
    option_of,
    refuse_typed,
    rows_if_any,
    seed,
    typed,
)
from calibrant.cli.output import print_result, show_json
from calibrant.errors import InvalidInputError, sentence
from calibrant.formatting import pluralize
from calibrant.inference.planning import (
    ALTERNATIVES,
    checked_predictions,
    detectable_distance,
    required_samples,
)
from calibrant.inference.testing import DEFAULT_TEST
from calibrant.io.read import FileNames, read_columns
from calibrant.records import Missing
from calibrant.results import Array


@click.command(epilog=examples("calibrant plan loans.csv -p p --distance 0.02"))
@rows_if_any
@click.option(
    "--prediction", "-p", type=NAME, help="Column of predictions in FILE, for their shape; uniform if absent."
)
@missing
@click.option("--distance", "-d", type=float, help="Distance from calibration to be detected.")
@click.option("--records", "-n", type=click.IntRange(1, 10**9), help="Labelled records at hand.")
@option_of(required_samples, "--power", help="Probability of detection.")
@option_of(required_samples, "--alpha", help="Level of the test.")
@click.option("--accept", type=float, help="Distance small enough to accept; with --reject.")
@click.option("--reject", type=float, help="Distance too large: records that decide between the two.")
@option_of(required_samples, "--confidence", help="Of that verdict.")
@click.option(
    "--measure",
    "-m",
    type=MEASURE,
    help=f"Measure to test with; {DEFAULT_TEST}, or lower-distance to decide.",
)
@click.option(
    "--alternative",
    type=click.Choice(list(ALTERNATIVES)),
    default="shift",
    show_default=True,
    help="In which way the predictions may be wrong.",
)
@option_of(required_samples, "--draws", help="Simulated data sets.")
@seed
@as_json
def plan(
    file: FileNames | None,
    prediction: str | None,
    missing: Missing,
    distance: float | None,
    records: int | None,
    power: float,
    alpha: float,
    accept: float | None,
    reject: float | None,
    confidence: float,
    measure: str | None,
    alternative: str,
    draws: int,
    seed: int | None,
    json_: bool,
) -> None:
    """Plan before labelling: records needed for a --distance, or the distance that --records can show.

    With --accept and --reject: records from which on a tolerance test always reaches a verdict.

    FILE may hold predictions without outcomes; their shape matters.
    """  # fmt: skip
    tolerance = accept is not None or reject is not None
    if (distance is not None) + (records is not None) + tolerance != 1:
        rule = "needs either --distance, or --records, or --accept and --reject"
        raise InvalidInputError(sentence("calibrant plan", rule))
    if (file is not None and prediction is None) or (file is None and typed("prediction")):
        raise InvalidInputError(sentence("FILE and --prediction", "must be given together"))
    if file is None:
        refuse_typed("needs FILE", "missing")
    if tolerance:
        _refuse_what_tolerance_ignores(file)
    else:
        refuse_typed("applies to --accept and --reject alone", "confidence")
    shape, dropped = (None, 0) if file is None or prediction is None else _shape(file, prediction, missing)
    options: dict[str, Any] = {"power": power, "alpha": alpha, "measure": measure, "alternative": alternative}
    options |= {"predictions": shape, "draws": draws, "seed": seed}
    if tolerance:
        planned = required_samples(accept=accept, reject=reject, confidence=confidence, measure=measure)
    elif distance is not None:
        planned = required_samples(distance, **options)
    else:
        options["measure"] = measure or DEFAULT_TEST
        planned = detectable_distance(int(records or 0), **options)
    if json_:
        show_json({**planned.to_dict(), "dropped": dropped})
        return
    print_result(str(planned))
    if dropped:
        print_result(f"{pluralize(dropped, 'row')} without a prediction dropped")


def _refuse_what_tolerance_ignores(file: FileNames | None) -> None:
    """Refuse what a bound for all predictions and all ways to be wrong has no use for."""
    rule = "does not apply to --accept and --reject, which hold for any predictions"
    if file is not None:
        raise InvalidInputError(sentence("FILE", rule, hint="leave it out"))
    refuse_typed(rule, "power", "alpha", "alternative", "draws", "seed")


def _shape(file: FileNames, prediction: str, missing: Missing) -> tuple[Array, int]:
    """Return the predictions of a file, and how many rows had none."""
    read = read_columns(file, [prediction])[prediction]
    kept = read if missing == "error" else read[read == read]  # only NaN differs from itself
    hint = "pass --missing drop to leave such rows out"
    return checked_predictions(kept, f"column {prediction!r}", hint), len(read) - len(kept)
