"""`calibrant plan`: how many labeled records are needed, or what a number of them can show."""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli import options as opt
from calibrant.cli.output import print_note, print_result, print_sentences, show_json
from calibrant.cli.rows import read_predictions
from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.formatting import confidence_text, pluralize
from calibrant.inference.planning import (
    ALTERNATIVES,
    detectable_distance,
    required_samples,
    validation_sample_size,
)
from calibrant.inference.testing import DEFAULT_TEST
from calibrant.io.read import FileNames
from calibrant.metrics.lookup import find_measure
from calibrant.records import Missing

WIDTHS = ("ratio_width", "slope_width", "c_width")


@click.command(epilog=opt.examples("calibrant plan loans.csv -p p --distance 0.02"))
@opt.rows_if_any
@opt.column_option(
    "--prediction", "-p", help="Column of predictions in FILE, for their shape; uniform if absent."
)
@opt.missing
@click.option("--base-rate", type=float, help="Share of events to expect, if there are no predictions.")
@click.option("--c-statistic", type=float, help="c-statistic to expect; with --base-rate.")
@opt.option_of(validation_sample_size, "--ratio-width", help="Width of the interval of the O/E ratio.")
@opt.option_of(validation_sample_size, "--slope-width", help="Width of the interval of the slope.")
@opt.option_of(validation_sample_size, "--c-width", help="Width of the interval of the c-statistic.")
@click.option("--distance", "-d", type=float, help="Distance from calibration to be detected.")
@click.option("--records", "-n", type=click.IntRange(1, 10**9), help="Labeled records at hand.")
@opt.option_of(required_samples, "--power", help="Probability of detection.")
@opt.option_of(required_samples, "--alpha", help="Level of the test.")
@click.option("--accept", type=float, help="Distance small enough to accept; with --reject.")
@click.option("--reject", type=float, help="Distance too large to accept; with --accept.")
@opt.option_of(
    required_samples,
    "--confidence",
    help="Confidence of that verdict, and of the intervals of the widths asked for.",
)
@click.option(
    "--measure", "-m", type=opt.MEASURE, help=f"To test with; {DEFAULT_TEST}, or lower-distance to decide."
)
@click.option("--alternative", type=click.Choice(list(ALTERNATIVES)), default="shift",
              help="How the predictions may be wrong.")  # fmt: skip
@opt.option_of(required_samples, "--draws", help="Simulated data sets.")
@opt.seed
@opt.as_json
def plan(
    file: FileNames | None, prediction: str | None, missing: Missing, base_rate: float | None,
    c_statistic: float | None, distance: float | None, records: int | None, accept: float | None,
    reject: float | None, confidence: float, measure: str | None, json_: bool, **options: Any,
) -> None:  # fmt: skip
    """Plan before labeling: records needed for precise estimates, or to detect a --distance.

    FILE may hold predictions without outcomes. From their shape (or --base-rate and --c-statistic) follow
    the records for intervals of the O/E ratio, slope and c-statistic of the widths asked for (Riley et al.
    2021). --distance asks for the records that detect it, --records for the distance that they detect,
    --accept and --reject for the records from which on a tolerance test always reaches a verdict.
    """
    tolerance = accept is not None or reject is not None
    expected = base_rate is not None or c_statistic is not None
    asked = (distance is not None) + (records is not None) + tolerance
    if asked > 1 or (asked == 0 and file is None and not expected):
        rule = "needs FILE, --base-rate and --c-statistic, --distance, --records, or --accept and --reject"
        raise InvalidInputError("calibrant plan", rule)
    if file is None:
        opt.refuse_typed("needs FILE", "missing")
    if tolerance:
        rule = "does not apply to --accept and --reject, which hold for any predictions"
        if file is not None:
            raise InvalidInputError("FILE", rule, hint="leave it out")
        opt.refuse_typed(rule, "base_rate", "c_statistic", *WIDTHS)
        opt.refuse_typed(rule, "power", "alpha", "alternative", "draws", "seed")
    elif file is None and not expected:
        opt.refuse_typed("needs FILE, --base-rate and --c-statistic, or --accept and --reject", "confidence")
        opt.refuse_typed("needs FILE, or --base-rate and --c-statistic", *WIDTHS)
    if asked == 0:
        rule = "applies to --distance and --records alone"
        opt.refuse_typed(rule, "power", "alpha", "measure", "alternative", "draws", "seed")
    shape, dropped = None, 0
    if file is not None or opt.typed("prediction"):
        shape, dropped = read_predictions(file, prediction, missing)
    widths = {name: options.pop(name) for name in WIDTHS}
    validation = planned = None
    if file is not None or expected:
        try:
            validation = validation_sample_size(
                shape, base_rate=base_rate, c=c_statistic, confidence=confidence, **widths
            )
        except TooFewRecordsError as error:  # constant predictions have no slope, but a distance
            if asked == 0:
                raise
            print_note(f"No records for narrow intervals: {error.with_parts(hint='')}")
    if tolerance:
        planned = required_samples(accept=accept, reject=reject, confidence=confidence, measure=measure)
    elif distance is not None:
        planned = required_samples(distance, predictions=shape, measure=measure, **options)
    elif records is not None:
        chosen = measure or DEFAULT_TEST
        planned = detectable_distance(records, predictions=shape, measure=chosen, **options)
    if json_:
        found = {} if validation is None else validation.to_dict()
        if validation is not None and records is not None:
            found["widths_at_records"] = validation.widths_at(records)
        show_json(
            {**(found if planned is None else planned.to_dict()), "dropped": dropped}
            | ({} if planned is None or validation is None else {"validation": found})
        )
        return
    if validation is not None and records is None:
        print_sentences(str(validation))
    elif validation is not None and records is not None:
        expect = validation.widths_at(records).items()
        wide = ", ".join(f"{find_measure(name).words} {width:.2g}" for name, width in expect)
        made = f"make {confidence_text(validation.confidence)} intervals this wide: {wide}"
        print_sentences(f"{pluralize(records, 'record')} {made}")
    if planned is not None:
        print_sentences(str(planned))
    if dropped:
        print_result(f"{pluralize(dropped, 'row')} without a prediction dropped")
