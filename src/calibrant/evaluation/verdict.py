"""The verdict: one sentence that answers how far, whether it is real, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.evaluation.rows import Row
from calibrant.inference.engine import TestResult
from calibrant.numerals import chance, short

SIZE = "smooth"  # how far: within a factor 2 of the distance to calibration, in units of probability
WHERE = "kuiper"  # where: it names an interval


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to tell somebody who reads one line.

    `calibrated` is True when chance alone gives such a deviation with probability above `alpha`. `size` is
    the smooth calibration error, `noise` its mean for calibrated forecasts with the same predictions
    (None for fractional outcomes, which cannot be simulated). Predictions are `direction` ("too high" or
    "too low") on balance between `start` and `stop`, where the residuals add up most.
    """

    sentence: str
    calibrated: bool
    pvalue: float
    pvalue_is_bound: bool  # no simulated value reached the observed one
    alpha: float
    size: float
    noise: float | None
    direction: str
    start: float
    stop: float


def verdict(rows: Mapping[str, Row], tested: TestResult | None, records: int, alpha: float) -> Verdict:
    """Judge by the default test; tell the size by the smooth error, and where by Kuiper's interval."""
    size, where = rows[SIZE], rows[WHERE]
    assert size.measurement is not None  # both exist for any data
    assert where.measurement is not None
    found = where.measurement.details
    pvalue, log_pvalue = (1.0, 0.0) if tested is None else (tested.pvalue, tested.log_pvalue)
    is_bound = tested is not None and tested.pvalue_is_bound
    by_chance = "" if size.chance is None else f"; chance alone would give about {short(size.chance)}"
    calibrated = pvalue > alpha
    written = f"{'' if is_bound else '= '}{chance(pvalue, log_pvalue, is_bound)}"
    if calibrated:
        text = (
            f"The deviation (smooth calibration error {short(size.value)}) is what chance gives {records:,} "
            f"calibrated records{by_chance} (p {written})."
        )
    else:
        span = f"between {found['start']:.3g} and {found['stop']:.3g}"
        if found["start"] == found["stop"]:
            span = f"at {found['start']:.3g}"
        text = (
            f"The predictions are off by about {short(size.value)} (smooth calibration error{by_chance}). "
            f"They are {found['predictions']} on balance {span} (p {written})."
        )
    return Verdict(
        text, calibrated, pvalue, is_bound, alpha, size.measurement.value, size.chance,
        found["predictions"], found["start"], found["stop"],
    )  # fmt: skip
