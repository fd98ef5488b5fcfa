"""Methods that read the prediction alone: logistic maps, the spline, isotonic maps and Venn-Abers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant.errors import reject_name
from calibrant.fits import isotonic as isotonic_fits
from calibrant.fits import spline as spline_fits
from calibrant.fits.levels import Levels, likeliest_limit
from calibrant.fits.logistic import Clip, Family, LogisticFit, Shrink, logistic, shows_no_slope
from calibrant.formatting import format_value
from calibrant.inputs import finite_number, whole_number
from calibrant.recalibration.maps.base import IdentityMap
from calibrant.recalibration.maps.piecewise import LogisticMap, PairMap, PiecewiseMap, SplineMap
from calibrant.recalibration.registry import Fit, Fitted
from calibrant.recalibration.samples import Sample

Ends = Literal["kt", "raw"]


def isotonic(sample: Sample, *, seed: int, ends: Ends = "kt") -> Fitted:
    return Fitted(PiecewiseMap.of(*isotonic_fits.isotonic(sample.levels, honest_ends=_honest(ends))))


def centered_isotonic(sample: Sample, *, seed: int, ends: Ends = "kt") -> Fitted:
    return Fitted(PiecewiseMap.of(*isotonic_fits.centered_isotonic(sample.levels, honest_ends=_honest(ends))))


def bounded_slope(sample: Sample, *, seed: int, slope: float = 2.0, ends: Ends = "raw") -> Fitted:
    slope = finite_number("slope", slope, 0.0)
    knots = isotonic_fits.bounded_slope(sample.levels, slope=slope, honest_ends=_honest(ends))
    return Fitted(PiecewiseMap.of(*knots))


def venn_abers(sample: Sample, *, seed: int, merge: Literal["log", "brier"] = "log") -> Fitted:
    if merge not in ("log", "brier"):
        raise reject_name("merge", str(merge), ["log", "brier"])
    pairs = isotonic_fits.venn_abers(sample.levels)
    void = sample.weighted or not sample.binary
    reason = "The guarantee of Venn-Abers pairs is for 0/1 records of equal weight; these are not."
    return Fitted(PairMap.of(sample.levels.values, *pairs, merge), (reason,) if void else ())


def _honest(ends: str) -> bool:
    if ends not in ("kt", "raw"):
        raise reject_name("ends", str(ends), ["kt", "raw"])
    return ends == "kt"


WRONG_WAY = (
    "The fitted slope is negative: larger predictions went with fewer outcomes 1, so the scores rank the"
    " wrong way round; check the labels."
)
ONE_LEVEL = "All predictions are equal, which shows no slope: the map shifts them only."


def identity(sample: Sample, *, seed: int) -> Fitted:
    return Fitted(IdentityMap())


def limits(sample: Sample, *, seed: int) -> Fitted:
    """Leave the predictions as they are, but keep them off 0 and 1 if some are exactly 0 or 1."""
    clip = likeliest_limit(sample.levels)
    if clip == 0.0:
        return Fitted(IdentityMap())
    kept = f"Predictions are kept within {clip:.3g} and {1 - clip:.6g}"
    details = {"clip": clip, "clip_note": f"{kept}: so few records do not support 0 and 1."}
    return Fitted(LogisticMap(0.0, 1.0, 1.0, clip), (), details)


def temperature_of(slope: float) -> float | None:
    """Return the temperature by which logits are divided, None where it is infinite.

    >>> temperature_of(0.8), temperature_of(0.0)
    (1.25, None)
    """
    return 1 / slope if abs(slope) > 1e-300 else None


def _logistic_method(family: Family) -> Fit:
    def fit(sample: Sample, *, seed: int, shrink: Shrink = "auto", clip: Clip = "auto") -> Fitted:
        fit = logistic(sample.levels, family, shrink=shrink, clip=clip)
        width = fit.width if fit.width < float("inf") else None
        details = {"clip": fit.clip, "width": width, **_held(sample.levels, fit)}
        if family == "temperature":
            details["temperature"] = temperature_of(fit.low)
        return Fitted(LogisticMap.of(fit), logistic_notes(sample, fit), details)

    return fit


shift, temperature = _logistic_method("shift"), _logistic_method("temperature")
platt, beta = _logistic_method("platt"), _logistic_method("beta")


def logistic_notes(sample: Sample, fit: LogisticFit) -> tuple[str, ...]:
    notes = [WRONG_WAY] if fit.low < 0 or fit.high < 0 else []
    return (*notes, *([ONE_LEVEL] if shows_no_slope(sample.levels) else []))


def _held(levels: Levels, fit: LogisticFit) -> dict[str, Any]:
    """Return the clip, and a note on it or on the limits of a map that separates the outcomes."""
    low, high = fit.limits
    if low > 0 and high < 1:
        held = f"the map is held within {low:.3g} and {high:.6g}"
        return {"clip": fit.clip, "clip_note": f"Predictions separate the outcomes, so that {held}."}
    return _clipped(levels, fit.clip)


def _clipped(levels: Levels, clip: float) -> dict[str, Any]:
    values = levels.values
    beyond = (values < clip) | (values > 1.0 - clip)
    low, high = np.count_nonzero(values <= clip), np.count_nonzero(values >= 1.0 - clip)
    if not beyond.any() or max(low, high) < 2:
        return {"clip": clip}
    count = format_value(float(levels.weights[beyond].sum()))
    note = (
        f"Predictions below {clip:.3g} are treated as {clip:.3g}, and above {1 - clip:.6g} as {1 - clip:.6g}"
        f" ({count} records), which fits these records better."
    )
    return {"clip": clip, "clip_note": note}


MAX_KNOTS = 512
TOO_FEW_LOGITS = "The predictions have too few distinct logits for a spline: the map is a shrunk Platt map."


def spline(sample: Sample, *, seed: int, knots: int = spline_fits.KNOTS, clip: Clip = "auto") -> Fitted:
    whole_number("knots", knots, spline_fits.MIN_KNOTS, MAX_KNOTS)
    fit = sample.cached(  # the maps of covariates start from it too
        f"spline {knots} {clip}", lambda: spline_fits.spline(sample.levels, knots=knots, clip=clip)
    )
    if isinstance(fit, LogisticFit):
        why = (TOO_FEW_LOGITS,) if fit.limits == (0.0, 1.0) else ()
        return Fitted(LogisticMap.of(fit), (*why, *logistic_notes(sample, fit)), _held(sample.levels, fit))
    details = {"clip": fit.clip, "level_width": fit.level_width, "bend_width": fit.bend_width}
    details |= _clipped(sample.levels, fit.clip)
    return Fitted(SplineMap(fit.knots, fit.shifts, fit.clip), (), details)
