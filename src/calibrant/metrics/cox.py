"""Cox's recalibration: slope and intercept of the outcome on the logit of the prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.errors import TooFewRecordsError
from calibrant.fits.levels import expit
from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.kernels.fits import logistic_fit, logistic_fits
from calibrant.metrics.bibliography import COX_PAPER
from calibrant.metrics.calling import accepts_rows, measure_function
from calibrant.metrics.certificates import EPS, no_certificate, rounded, widened
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import dot
from calibrant.results import Array, Certified, Result

COARSE = 4096  # groups of neighboring levels on which the fit of many levels begins
MIN_OUTCOME_SHARE = 1e-6  # of either outcome, from which on the base rate alone says how rare it is
MAX_LOGIT_SHIFT = 0.5  # on the logit scale; within it, curvatures differ by less than a factor of 2
MAX_LOGIT = 27.6  # predictions of 0 and 1 have no logit: they count as 1e-12 from the end


@measure_function
def calibration_slope(forecasts: Forecasts) -> Certified:
    """Slope of Cox's recalibration, logit E[y] = intercept + slope logit(v): below 1 means overconfident.

    Examples
    --------
    >>> round(calibration_slope([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8]), 6)
    0.0
    """
    intercept, slope = _joint_fit(forecasts)
    return Certified.point(slope, intercept=intercept)


@measure_function
def calibration_intercept(forecasts: Forecasts) -> Certified:
    """Intercept of Cox's recalibration with the slope held at 1: positive when predictions are too low.

    On the logit scale; the intercept that is fitted together with the slope is in cox_calibration.

    Examples
    --------
    >>> round(calibration_intercept([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 6)
    1.098612
    """
    return Certified.point(_offset(forecasts))


@calibration_intercept.rounding
def _intercept_rounded(forecasts: Forecasts, measured: Certified) -> Certified:
    rates = expit(measured.value + logits(forecasts))
    curvature = float((forecasts.weights * rates * (1 - rates)).sum())
    moved = 2 * _ratio(_gradient_error(forecasts, rates, np.ones(forecasts.levels)), curvature)
    return _moved("intercept", forecasts, measured, moved, moved)


@calibration_slope.rounding
def _slope_rounded(forecasts: Forecasts, measured: Certified) -> Certified:
    # With H the curvature and g a bound of the errors of the gradient, the fit moves along a direction d by
    # at most 2 sqrt(d' H^-1 d) sqrt(g' H^-1 g): Cauchy's inequality, and 2 for the curvature's change on the
    # way.
    logit = logits(forecasts)
    rates = expit(measured.details["intercept"] + measured.value * logit)
    curvature = forecasts.weights * rates * (1 - rates)
    total = float(curvature.sum())
    centered = logit - _ratio(float(curvature @ logit), total, 0.0)
    spread = float(curvature @ centered**2)
    level, tilt = (_gradient_error(forecasts, rates, along) for along in (np.ones(len(logit)), centered))
    pull = math.sqrt(_ratio(level**2, total) + _ratio(tilt**2, spread))
    farthest = math.sqrt(_ratio(1.0, total) + _ratio(float(np.max(centered**2)), spread))
    moved = 2 * pull * math.sqrt(_ratio(1.0, spread))
    return _moved("slope", forecasts, measured, moved, 2 * pull * farthest)


def _gradient_error(forecasts: Forecasts, rates: Array, along: Array) -> float:
    """Bound the gradient along `along` of the exact sums: what the fit has left, and what rounding took."""
    # sums of n terms err by n / 2 units in the last place; twice that covers the arithmetic here
    rest = forecasts.outcomes - forecasts.weights * rates
    terms = forecasts.counts + (forecasts.levels + 16)
    taken = 2 * EPS * terms * (forecasts.outcomes + forecasts.weights * rates)
    return abs(float(rest @ along)) + float(taken @ np.abs(along))


def _moved(name: str, forecasts: Forecasts, measured: Certified, moved: float, farthest: float) -> Certified:
    if not farthest <= MAX_LOGIT_SHIFT:
        raise no_certificate(name, "the weights have too many orders of magnitude for what sums keep of them")
    return widened(rounded(forecasts, measured), moved)


def _ratio(above: float, below: float, otherwise: float = math.inf) -> float:
    return above / below if below > 0 else otherwise


@dataclass(frozen=True, slots=True, repr=False)
class CoxCalibration(Result):
    """Cox's logistic recalibration: the joint fit, and the intercept when the slope is held at 1."""

    intercept: float
    slope: float
    intercept_at_slope_one: float


@accepts_rows
def cox_calibration(forecasts: Forecasts) -> CoxCalibration:
    """Fit logit E[y] = intercept + slope logit(v) by maximum likelihood.

    Examples
    --------
    >>> cox_calibration([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])
    Traceback (most recent call last):
    ...
    calibrant.errors.TooFewRecordsError: calibration slope needs two distinct predictions; got 1.
    """
    return CoxCalibration(*_joint_fit(forecasts), _offset(forecasts))


def _joint_fit(forecasts: Forecasts) -> tuple[float, float]:
    """Return intercept and slope of the largest weighted logistic likelihood."""
    _check_both_outcomes(forecasts)
    if forecasts.levels < 2:
        raise TooFewRecordsError("calibration slope", "needs two distinct predictions", "got 1")
    logit = logits(forecasts)
    low_one, high_one = logit[forecasts.outcomes > 0][[0, -1]]
    low_zero, high_zero = logit[forecasts.outcomes < forecasts.weights][[0, -1]]
    if low_one >= high_zero or high_one <= low_zero:  # a threshold splits them: the likelihood has no maximum
        hint = "a perfect split has no finite slope; use another measure"
        rule, got = "needs overlapping outcomes", "the outcomes are split"
        raise TooFewRecordsError("calibration slope", rule, got, hint)
    ones, weights = forecasts.outcomes, forecasts.weights
    center, scale = dot(weights, logit), float(np.ptp(logit))
    x = np.subtract(logit, center, out=logit)
    x /= scale
    # from the constant fit, where the curvature is sound
    beta = np.array([np.log(ones.sum() / (weights - ones).sum()), 0.0])
    if len(x) > 4 * COARSE:  # roughly at first, on groups of neighbors
        starts = np.linspace(0, len(x), COARSE, endpoint=False).astype(np.intp)
        grouped_ones, grouped = np.add.reduceat(ones, starts), np.add.reduceat(weights, starts)
        beta = logistic_fit(np.add.reduceat(weights * x, starts) / grouped, grouped_ones, grouped, beta)
    beta = logistic_fit(x, ones, weights, beta)
    slope = float(beta[1]) / scale
    return float(beta[0]) - slope * center, slope


def _check_both_outcomes(forecasts: Forecasts) -> None:
    if not (forecasts.outcomes > 0).any() or not (forecasts.outcomes < forecasts.weights).any():
        got = f"got base rate {forecasts.base_rate:g}"
        raise TooFewRecordsError("calibration slope and intercept", "need both outcomes", got)


def _offset(forecasts: Forecasts) -> float:
    _check_both_outcomes(forecasts)
    logit, weights = logits(forecasts), forecasts.weights
    others = float((weights - forecasts.outcomes).sum())

    def surplus(intercept: float) -> float:
        if others < MIN_OUTCOME_SHARE:  # next to 1 the base rate has lost their digits
            return dot(weights, expit(-logit - intercept)) - others
        return forecasts.base_rate - dot(weights, expit(logit + intercept))

    rare = min(others, forecasts.base_rate) < MIN_OUTCOME_SHARE
    widest = 800.0 if rare else 100.0  # |logit| stays below 28
    return root(surplus, -widest, widest, 1e-14)


def logits(forecasts: Forecasts) -> Array:
    """Return log(v / (1 - v)) of each level, held within +-MAX_LOGIT."""
    logit, other = np.empty(forecasts.levels), np.negative(forecasts.values)
    with np.errstate(divide="ignore"):
        np.subtract(np.log(forecasts.values, out=logit), np.log1p(other, out=other), out=logit)
    return np.clip(logit, -MAX_LOGIT, MAX_LOGIT, out=logit)


def _slopes(forecasts: Forecasts, outcomes: Array, weights: Array, settings: Settings) -> Array:
    logit = logits(forecasts)
    scale = float(np.ptp(logit))
    if scale == 0.0:
        return np.full(len(outcomes), np.inf)
    centered = (logit - dot(forecasts.weights, logit)) / scale
    return logistic_fits(outcomes, weights, centered)[:, 1] / scale


MEASURES = (
    Measure(
        "slope",
        calibration_slope,
        family="regression",
        headline=True,
        meaning="slope of the outcome on the logit of the prediction; 1 is right, below 1 overconfident",
        complete=False,
        largest=math.inf,
        ideal=1.0,
        signed=True,
        needs_both_outcomes=True,
        null=Null(tables=_slopes),
        cost="O(m) per step",
        citation=COX_PAPER,
    ),
    Measure(
        "intercept",
        calibration_intercept,
        family="regression",
        meaning="shift on the logit scale that makes the mean right; positive when predictions are too low",
        complete=False,
        symmetric=False,
        largest=math.inf,
        signed=True,
        needs_both_outcomes=True,
        cost="O(m) per step",
        citation=COX_PAPER,
    ),
)
