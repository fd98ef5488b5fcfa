"""The sentence of a rejection: size and direction come from the part of the test that spoke."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.errors import CalibrantError
from calibrant.evaluation.rows import SIZE, WHERE, Row
from calibrant.forecasts import Forecasts
from calibrant.inference.engine import TestResult
from calibrant.inference.upside_down import upside_down
from calibrant.measures.regression import calibration_slope
from calibrant.numerals import predicted_happened, short


def rejection(
    rows: Mapping[str, Row], tested: TestResult | str, forecasts: Forecasts, spoke: str, unseen: float
) -> str:
    """Say what is wrong, in which direction and by how much, as the part of the test has it that `spoke`."""
    assert isinstance(tested, TestResult)
    said = said_by_part(spoke, rows, forecasts, tested)
    return f"{said} ({tested.written_pvalue}).{size_sentence(rows[SIZE])}"


def said_by_part(spoke: str, rows: Mapping[str, Row], forecasts: Forecasts, tested: TestResult) -> str:
    """Say what this part of the test found."""
    return _SPOKEN[spoke](rows, forecasts, tested)


def size_sentence(size: Row) -> str:
    """Say how far in all, where that is more than chance gives."""
    if size.chance is None:
        return f" The smooth calibration error is {short(size.value)}."
    if size.value is None or size.value <= size.chance:
        return ""
    return (
        f" The smooth calibration error is {short(size.value)}; chance alone would give {short(size.chance)}."
    )


def _kuiper(rows: Mapping[str, Row], forecasts: Forecasts, tested: TestResult) -> str:
    taken = rows[WHERE].measurement
    assert taken is not None
    start, stop = taken.details["start"], taken.details["stop"]
    span = f"at {start:.3g}" if start == stop else f"between {start:.3g} and {stop:.3g}"
    by_chance = rows[WHERE].chance
    usual = "" if by_chance is None else f", where chance gives about {short(by_chance)}"
    return (
        f"Predictions are {taken.details['predictions']} {span}: outcomes there differ from them by "
        f"{short(taken.value)} of all records{usual}"
    )


def _bias(rows: Mapping[str, Row], forecasts: Forecasts, tested: TestResult) -> str:
    high = forecasts.mean_prediction > forecasts.base_rate
    return f"Predictions are too {'high' if high else 'low'} on the whole: {_means(forecasts)}"


def _means(forecasts: Forecasts) -> str:
    return predicted_happened(forecasts.mean_prediction, forecasts.base_rate)


def _slope(rows: Mapping[str, Row], forecasts: Forecasts, tested: TestResult) -> str:
    over = tested.details["slope_z"] < 0
    name, what = ("Overconfident", "extreme") if over else ("Underconfident", "timid")
    try:
        slope = calibration_slope.value(forecasts)
    except CalibrantError:  # every outcome is the same, or all predictions are
        slope = 1.0
    if slope == 1 or (slope < 1) != over:  # no fit, or one that has another direction than the score
        return f"{name}: predictions are too {what}; on the whole {_means(forecasts)}"
    size = (
        short(slope) if forecasts.cells is None else f"about {short(slope, 2)}, from the cells of the sketch"
    )
    if upside_down(forecasts):
        return f"Predictions point the wrong way (slope {size}): the higher they are, the fewer events come"
    if slope < 0:
        return f"Predictions do not rank the outcomes (slope {size}): with higher ones events come no oftener"
    return f"{name} (slope {size}): predictions are too {what}"


_SPOKEN = {"kuiper": _kuiper, "bias": _bias, "slope": _slope}
