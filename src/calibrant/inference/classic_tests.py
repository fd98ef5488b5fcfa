"""Statistics of tests that are not measures: the omnibus test, Spiegelhalter's z, Hosmer-Lemeshow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, pluralize
from calibrant.inference.null import Drawing, SignNull, record_outcomes, record_weights
from calibrant.inference.pvalues import exceedance
from calibrant.inputs import whole_number
from calibrant.kernels.cumulative import curve_extremes
from calibrant.metrics.bibliography import OTHER_PAPERS
from calibrant.metrics.binned import bin_starts
from calibrant.metrics.calling import measure_function
from calibrant.metrics.cox import logits
from calibrant.metrics.null_laws import (
    SPIEGELHALTER,
    Law,
    log_chi_square_tail,
    log_normal_tails,
    log_range_tails,
)
from calibrant.metrics.registry import Measure, Null
from calibrant.parallel import chunked_sum, dot, dots
from calibrant.results import Array, Certified


@measure_function
def hosmer_lemeshow(forecasts: Forecasts, *, groups: int = 10, fitted: bool = False) -> Certified:
    """Hosmer-Lemeshow statistic over `groups` bins of about equal weight; ties are never split.

    Chi-square with one degree of freedom per bin, but none for predictions that are all 0, or all 1. With
    weights, counts become effective counts.

    Parameters
    ----------
    groups
        How many bins.
    fitted
        Whether the predictions were fitted to these same outcomes, which takes two degrees of freedom.

    Returns
    -------
    float
        The statistic, with degrees of freedom and p-value where it is printed.

    Examples
    --------
    >>> round(hosmer_lemeshow([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5], groups=1), 6)
    1.0
    """
    starts, spread = _bins(forecasts, groups)
    residual = np.add.reduceat(forecasts.residuals, starts)
    value = float(_chi_square(residual[None], spread)[0])
    return Certified.point(value, bins=len(starts), degrees_of_freedom=_degrees(spread, fitted))


def _degrees(spread: Array, fitted: bool) -> int:
    varied = int(np.count_nonzero(spread > 0))
    return max(1, varied) - (2 if fitted else 0)  # where none varies, the statistic is 0 or infinite


def _bins(forecasts: Forecasts, groups: int) -> tuple[npt.NDArray[np.intp], Array]:
    starts = bin_starts(forecasts, whole_number("groups", groups, 1), "quantile")
    weight = np.add.reduceat(forecasts.weights, starts)
    mean, rest = (
        np.add.reduceat(forecasts.weights * share, starts) / weight
        for share in (forecasts.values, 1 - forecasts.values)  # 1 - mean would lose its digits next to 1
    )
    return starts, np.add.reduceat(forecasts.squared_weights, starts) * mean * rest


def _chi_square(residuals: Array, spread: Array) -> Array:
    certain = spread <= 0  # bins that cannot vary count only if they did
    with np.errstate(over="ignore"):  # an event that was next to impossible: infinite
        terms = np.square(residuals) / np.where(certain, 1.0, spread)
    terms[:, certain] = np.where(np.abs(residuals[:, certain]) > 1e-12, np.inf, 0.0)
    return np.asarray(terms.sum(axis=1))


def _least_varied(forecasts: Forecasts, groups: int) -> Array:
    """Mark the bin that varies least: chi-square needs a residual that is nearly normal in every bin."""
    starts, spread = _bins(forecasts, groups)
    least = int(np.argmin(np.where(spread > 0, spread, np.inf)))  # a bin that cannot vary adds nothing
    bin_of = np.repeat(np.arange(len(starts)), np.diff(starts, append=forecasts.levels))
    return np.asarray(bin_of == least, dtype=np.float64)


def hosmer_lemeshow_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    settings = hosmer_lemeshow.settings(options)
    groups = settings["groups"]
    starts, spread = _bins(forecasts, groups)
    degrees = _degrees(spread, settings["fitted"])
    if degrees < 1:
        got = f"got {pluralize(len(starts), 'bin')}"
        raise InvalidInputError("groups", "must leave a degree of freedom", got)

    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        cuts, varied = _bins(forecasts, groups)
        return _chi_square(np.add.reduceat(residuals, cuts, axis=1), varied)

    law = Law(
        f"chi-square with {degrees} degrees of freedom",
        lambda x: log_chi_square_tail(x, degrees),
        float(degrees),
        lambda forecasts: 1.0,
        leverage=lambda others: _least_varied(others, groups),
    )
    meaning = "squared residual over variance, summed over bins of equal weight"
    return _test(hosmer_lemeshow, "Hosmer-Lemeshow statistic", meaning, Null(batch=batch, law=law))


def _test(function: Any, words: str, meaning: str, null: Null, *, signed: bool = False) -> Measure:
    name = function.__name__.replace("_", "-")
    about: dict[str, Any] = {"words": words, "meaning": meaning, "citation": OTHER_PAPERS[name]}
    return Measure(name, function, family="classic", cost="O(m)", null=null, signed=signed, **about)


@measure_function
def spiegelhalter(forecasts: Forecasts) -> Certified:
    """Spiegelhalter's z: Brier score minus its mean under calibration, in standard deviations.

    Positive when the forecasts do worse than they claim (overconfident), negative when better. Blind to
    errors that leave the Brier score where it was expected: at v = 1/2 it sees nothing.

    Returns
    -------
    float
        z; standard normal in large samples if calibrated.

    Examples
    --------
    >>> round(spiegelhalter([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]), 6)
    -0.833333
    """
    scale = SPIEGELHALTER.scale(forecasts)
    if scale == 0.0:
        rule = "needs a prediction other than 0, 1/2 and 1"
        raise TooFewRecordsError("Spiegelhalter's z", rule, "got none")
    return Certified.point(dot(forecasts.residuals, 1 - 2 * forecasts.values) / scale)


def spiegelhalter_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        return dots(residuals, 1 - 2 * forecasts.values) / SPIEGELHALTER.scale(forecasts)

    law = replace(SPIEGELHALTER, name="normal", scale=lambda forecasts: 1.0)
    null = Null(batch=batch, mean=lambda *_: 0.0, law=law, two_sided=True)
    meaning = "Brier score minus what it should be, in standard deviations"
    return _test(spiegelhalter, "Spiegelhalter's z", meaning, null, signed=True)


ROUNDING = 1e-12  # of weights that sum to 1
MIN_INVERTED_SD = 3.0  # standard deviations from which on predictions point the wrong way


def ranks_inverted(forecasts: Forecasts) -> bool:
    centered = forecasts.values - forecasts.mean_prediction
    rate = min(1.0, forecasts.base_rate)
    noise = rate * (1 - rate) * dot(forecasts.squared_weights, centered**2)
    return dot(centered, forecasts.outcomes) < -MIN_INVERTED_SD * math.sqrt(noise) - ROUNDING


VISIBLE_SD = 3.24  # standard deviations: a bias that a two-sided 5% test sees with probability 90%
OUTER_SHARE = 0.1  # of the variance beyond which logits are limited under random signs
MIN_VARIANCE = 1e-20  # variance of the logits below which predictions count as one: rounding would decide


@measure_function
def omnibus(forecasts: Forecasts) -> Certified:
    """The stronger evidence against calibration of two: Kuiper's range and Cox's score.

    -log of the smaller of their limit p-values; infinite where a prediction of 0 or 1 was wrong.

    Examples
    --------
    >>> round(omnibus([0, 0, 0, 1], [0.6, 0.7, 0.8, 0.9]), 6)
    3.030509
    """
    parts = _Parts.of(forecasts)
    kuiper, cox = (float(part[0]) for part in parts.log_pvalues(forecasts.residuals[None]))
    certain = (forecasts.values == 0) | (forecasts.values == 1)
    wrong = float(np.abs(forecasts.residuals[certain]).sum())
    turned: dict[str, Any] = {"upside_down": True} if ranks_inverted(forecasts) else {}
    return Certified.point(
        math.inf if wrong > ROUNDING else -min(kuiper, cox),
        kuiper_pvalue=math.exp(kuiper),
        cox_pvalue=math.exp(cox),
        # positive where outcomes exceed predictions; negative where predictions are too extreme
        bias_z=float(forecasts.residuals.sum()) / parts.whole if parts.whole > 0 else 0.0,
        slope_z=0.0 if parts.slope is None else dot(forecasts.residuals, parts.slope),
        impossible=wrong,  # share of the records whose prediction of 0 or 1 was wrong
        visible_bias=visible_bias(forecasts),
        **turned,
    )


def visible_bias(forecasts: Forecasts) -> float:
    """Return the least common bias noticed with probability 90%; 3 / n where no record disagrees."""
    records = 1.0 / float(forecasts.squared_weights.sum())
    return min(1.0, max(VISIBLE_SD * math.sqrt(forecasts.null_variance), 3.0 / records))


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    deviation: float  # of the end of the curve
    whole: float  # the same as the score has it
    slope: Array | None  # what residuals add to the standardized score of the slope; None without one

    @classmethod
    def of(cls, forecasts: Forecasts) -> _Parts:
        variance = _variances(forecasts)
        whole = math.sqrt(float(variance.sum()))
        deviation = math.sqrt(forecasts.null_variance) if forecasts.binary else whole
        away = leverage(forecasts, variance)
        spread = chunked_sum(lambda part: variance[part] * away[part] ** 2, len(away))
        slope = np.divide(away, math.sqrt(spread), out=away) if spread > MIN_VARIANCE * whole**2 else None
        return cls(deviation, whole, slope)

    def log_pvalues(self, residuals: Array) -> tuple[Array, Array]:
        low, high = curve_extremes(residuals).T
        if self.deviation == 0 or self.whole == 0:
            only = np.where(high - low > ROUNDING, -np.inf, 0.0)
            return only, only
        kuiper = log_range_tails((high - low) / self.deviation)
        end = residuals.sum(axis=1) / self.whole
        if self.slope is None:
            return kuiper, log_normal_tails(end)
        # not @: its threads would fight those that share out the draws
        slope = np.einsum("ij,j->i", residuals, self.slope)
        return kuiper, -(end**2 + slope**2) / 2  # chi-square, two degrees of freedom


def leverage(forecasts: Forecasts, variance: Array | None = None) -> Array:
    """Return what a residual adds to the score of the slope, without the intercept; 0 and 1 add nothing."""
    variance = _variances(forecasts) if variance is None else variance
    away, total = logits(forecasts), float(variance.sum())
    if total > 0:
        away -= dot(variance, away) / total
    away[variance <= 0] = 0.0
    return away


def _variances(forecasts: Forecasts) -> Array:
    """Return the variance of each level's residual under calibration; of fractions, the squares seen."""
    if not forecasts.binary:
        residuals = record_outcomes(forecasts) - np.repeat(forecasts.values, forecasts.counts)
        starts = np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
        return np.asarray(np.add.reduceat((record_weights(forecasts) * residuals) ** 2, starts))
    return np.asarray(forecasts.squared_weights * forecasts.values * (1 - forecasts.values))


def _log_tail(x: float) -> float:
    """Return log(2 q - q^2), q = exp(-x): a bound on the limit of P(statistic >= x); see interval-proofs."""
    return math.log(2 - math.exp(-x)) - x


def bounded_leverage(forecasts: Forecasts) -> Array:
    """Return the leverage with logits limited to their central four fifths: signs ignore their skewness."""
    variance = forecasts.squared_weights * forecasts.values * (1 - forecasts.values)
    away, total = logits(forecasts), float(variance.sum())
    if not total > 0:
        return np.zeros(forecasts.levels)
    share = np.cumsum(variance) / total
    ends = np.searchsorted(share, [OUTER_SHARE, 1 - OUTER_SHARE])
    limited = np.clip(away, *away[np.minimum(ends, forecasts.levels - 1)])
    return np.asarray(limited - dot(variance, limited) / total)


def omnibus_by_signs(null: SignNull, drawing: Drawing) -> tuple[float, float, dict[str, float]]:
    """Return statistic, p-value and details; joining the two parts as if independent is safe."""
    forecasts = null.forecasts

    def work(generator: np.random.Generator, rows: int) -> Array:
        low, high = curve_extremes(null.residuals(generator, rows)).T
        return np.asarray(high - low)

    ranges = drawing.run(work, null.width)
    kuiper = exceedance(float(np.ptp(curve_extremes(null.observed()), axis=1).min()), ranges)
    scores = null.score_draws(np.stack([np.ones(forecasts.levels), bounded_leverage(forecasts)]), drawing)
    largest = np.abs(scores).max(axis=1)
    cox = exceedance(float(largest[0]), largest[1:])
    least = min(kuiper, cox)
    bias, slope = scores[0].tolist()
    details = {"kuiper_pvalue": kuiper, "cox_pvalue": cox, "bias_z": bias, "slope_z": slope}
    return -math.log(least), 1 - (1 - least) ** 2, details


def omnibus_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    def batch(forecasts: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        return np.asarray(-np.minimum(*_Parts.of(forecasts).log_pvalues(residuals)))

    law = Law(
        "an upper bound, from Brownian range and chi-square",
        _log_tail,
        1.5,
        lambda forecasts: 1.0,
        leverage=leverage,
        fractions=True,
    )
    meaning = "the smaller p-value of Kuiper's range and Cox's score, as -log"
    return _test(omnibus, "omnibus statistic", meaning, Null(batch=batch, law=law))


MAX_GENERAL_PVALUE = 0.01  # p-value above which nothing but predictions of exactly 0 and 1 is reported
MIN_BIAS_SD = 3.0  # standard deviations from which a bias is named when Kuiper's range rejected


def leading_component(parts: Mapping[str, Any]) -> str:
    if parts.get("impossible", 0.0) > 0:
        return "certainty"
    if parts.get("cox_pvalue", 1.0) >= parts.get("kuiper_pvalue", 0.0):
        return "kuiper"
    return "bias" if abs(parts["bias_z"]) >= abs(parts["slope_z"]) else "slope"


def explain_rejection(parts: Mapping[str, Any], rejected: bool) -> str:
    """Explain a rejection, or the smallest bias that the test would have missed; "" if nothing is known."""
    if not rejected:
        unseen = parts.get("visible_bias")
        return "" if unseen is None else f" A common bias of up to {format_value(unseen, 2)} could go unseen."
    if "cox_pvalue" in parts:
        return f" {_explained(parts, leading_component(parts))}."
    if not {"predictions", "start", "stop"} <= parts.keys():
        return ""
    start, stop = parts["start"], parts["stop"]
    span = f"at {start:.3g}" if start == stop else f"between {start:.3g} and {stop:.3g}"
    return f" Predictions are {parts['predictions']} {span}."


def _explained(parts: Mapping[str, Any], component: str) -> str:
    bias, slope = parts["bias_z"], parts["slope_z"]
    if component == "certainty":  # what is wrong in general comes first: few predictions are certain
        never = "redictions of exactly 0 or 1 were wrong, which calibrated ones never are"
        if min(parts["kuiper_pvalue"], parts["cox_pvalue"]) > MAX_GENERAL_PVALUE:
            return f"P{never}"
        return f"{_explained(parts, leading_component({**parts, 'impossible': 0.0}))}. Also, p{never}"
    if component == "bias" or (component == "kuiper" and abs(bias) > MIN_BIAS_SD):  # all is one stretch
        side = "low" if bias > 0 else "high"
        return f"Predictions are too {side} on the whole (bias z = {format_value(bias)})"
    if component == "kuiper":
        return "A stretch of predictions is wrong (Kuiper's range); evaluate says which"
    if parts.get("upside_down"):
        wrong = "Predictions point the wrong way: the higher they are, the fewer events come"
        return f"{wrong} (slope z = {format_value(slope)})"
    word, what = ("Overconfident", "extreme") if slope < 0 else ("Underconfident", "timid")
    return f"{word}: predictions are too {what} (slope z = {format_value(slope)})"
