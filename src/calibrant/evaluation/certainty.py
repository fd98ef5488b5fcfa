"""The sentence where predictions of exactly 0 or 1 were wrong: these, and what is wrong with the others.

One such prediction rejects calibration, whatever all the others are. A reader must hear both: how many they
are, and what the test finds without them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrant.evaluation.null_reference import Chance
from calibrant.evaluation.rejection import said_by_part, size_sentence
from calibrant.evaluation.rows import SIZE, WHERE, Row, chosen, take
from calibrant.forecasts import Forecasts
from calibrant.inference.engine import TestResult
from calibrant.inference.spoken import speaker
from calibrant.inference.upside_down import ROUNDING
from calibrant.numerals import counted, percent, short


def certainty(
    rows: Mapping[str, Row], luck: Chance, forecasts: Forecasts, tested: TestResult, alpha: float
) -> str:
    """Say what is wrong in general, if anything is, and which certain predictions were wrong."""
    others = luck.without_certain()
    certain = f"Predictions {_wrong(forecasts)}; calibrated ones are never wrong"
    alone = f"{certain} ({tested.written_pvalue})."
    size = size_sentence(rows[SIZE])
    judged = None if others is None else others.verdict()
    if others is None or not isinstance(judged, TestResult):
        return alone + size
    inner = others.forecasts
    if judged.pvalue > alpha:
        deviate = counted(inner.n, "other prediction deviates", "other predictions deviate")
        return f"{alone} The {deviate} no more than chance gives ({judged.written_pvalue}).{size}"
    spoke = speaker(judged.details)
    of_others = {WHERE: others.judged(take(inner, chosen([WHERE])[0]))} if spoke == "kuiper" else {}
    left = counted(forecasts.n - inner.n, "prediction")
    general = f"{said_by_part(spoke, of_others, inner, judged)} ({judged.written_pvalue}"
    return f"{general}, without {left} of exactly 0 or 1). {certain}.{size}"


def _wrong(forecasts: Forecasts) -> str:
    """Name the certain predictions that were wrong: those of 0 are too low, those of 1 too high."""
    happened = _count(forecasts, 0.0, forecasts.outcomes)
    failed = _count(forecasts, 1.0, forecasts.weights - forecasts.outcomes)
    low = f"of exactly 0 are too low ({happened} happened)" if happened else ""
    high = f"of exactly 1 are too high ({failed} did not happen)" if failed else ""
    return " and those ".join(filter(None, (low, high)))


def _count(forecasts: Forecasts, value: float, wrong: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """Write how many of the predictions of this value were wrong; nothing where that is rounding."""
    here = forecasts.values == value
    mass = float(wrong[here].sum())
    if mass <= ROUNDING / 2:
        return ""
    records, share = int(forecasts.counts[here].sum()), mass / float(forecasts.weights[here].sum())
    if forecasts.record_weights is None and forecasts.binary:
        return f"{round(records * share):,} of {records:,}, {percent(share)},"
    return (
        f"{percent(share)} of {records:,} by weight" if forecasts.binary else f"{short(share)} of {records:,}"
    )
