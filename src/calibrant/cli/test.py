"""`calibrant test`: is the miscalibration of a file real, and is it larger than what matters?"""

from __future__ import annotations

import math
from typing import Any

import click

from calibrant.cli import options as opt
from calibrant.cli.output import print_result, print_sentences, readable_number, show_json, show_table
from calibrant.cli.reading import takes_censored
from calibrant.cli.rows import progress_bar, read_rows, sketch_if_needed
from calibrant.errors import InvalidInputError
from calibrant.formatting import pvalue_text
from calibrant.inference.intervals import confidence_interval
from calibrant.inference.testing import DEFAULT_TEST, Method, calibration_test
from calibrant.inference.tolerance import tolerance_test
from calibrant.io.read import FileNames
from calibrant.metrics.lookup import measures
from calibrant.parallel import recorded_seed


@click.command("test", epilog=opt.examples("calibrant test loans.csv -y default -p p"))
@opt.takes_clusters
@takes_censored
@opt.rows_in
@opt.columns_unless_sketch
@click.option("--measure", "-m", type=opt.MEASURE, default=DEFAULT_TEST, help="Measure to test with.")
@click.option(
    "--method", type=click.Choice(["auto", "exact", "asymptotic", "validity"]), default="auto",
    help="Simulate the null, use a limit law, or choose; validity accepts while ATB <= 1/T.",
)  # fmt: skip
@opt.option_of(calibration_test, "--draws", help="Simulated data sets.")
@opt.flag(
    "--interval",
    help="Add an interval for the population's value (of Kuiper, unless --measure is a measure).",
)
@click.option("--accept", type=float, help="Distance from calibration that does not matter.")
@click.option("--reject", type=float, help="Distance from calibration that must not be missed.")
@opt.option_of(tolerance_test, "--confidence", help="Of the verdict and of the interval.")
@opt.seed
@opt.as_json
def test(
    file: FileNames, measure: str, method: Method, draws: int, interval: bool, accept: float | None,
    reject: float | None, confidence: float, seed: int | None, json_: bool, **columns: Any,
) -> None:  # fmt: skip
    """Test whether the predictions in FILE are calibrated.

    With --accept and --reject, also whether their distance from calibration is small enough.
    """
    if (accept is None) != (reject is None):
        raise InvalidInputError("--accept and --reject", "must be given together")
    if not interval and accept is None:
        opt.refuse_typed("needs --interval, or --accept and --reject", "confidence")
    sketch = sketch_if_needed(file, **columns)
    forecasts = read_rows(file, **columns).forecasts if sketch is None else sketch.forecasts()
    used = recorded_seed(seed)
    with progress_bar("drawing outcomes") as progress:
        tested = calibration_test(
            forecasts, measure=measure, method=method, draws=draws, seed=used, progress=progress
        )
    collected = {"test": {**tested.to_dict(), "dropped": forecasts.dropped}}
    if interval:
        about = measure if measure in measures() else "kuiper"  # what grows with n has no such value
        taken = confidence_interval(forecasts, measure=about, draws=draws, seed=used, confidence=confidence)
        collected["interval"] = taken.to_dict()
    if accept is not None and reject is not None:
        decided = tolerance_test(forecasts, accept=accept, reject=reject, confidence=confidence)
        collected["tolerance"] = decided.to_dict()
    if json_:
        show_json(collected)
        return
    print_sentences(f"{tested}\n")
    for name, facts in collected.items():
        facts |= facts.pop("details", {})
        facts.pop("sentence", None)  # said above
        if name == "test":
            facts["pvalue"] = pvalue_text(tested.pvalue, tested.pvalue_is_bound)
        lines = [[key, _shown(key, value)] for key, value in facts.items() if value not in (None, [])]
        show_table([name, ""], lines)
        print_result()


def _shown(key: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if not isinstance(value, float):
        return str(value)
    if key in ("lower", "upper") and math.isinf(value):
        return "no limit"
    return pvalue_text(value) if key in ("kuiper_pvalue", "cox_pvalue") else readable_number(value)
