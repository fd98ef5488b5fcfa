"""Proper scores, how much of each is miscalibration (CORP, by isotonic regression), calibration indices."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibrant.errors import TooFewRecordsError
from calibrant.forecasts import Forecasts
from calibrant.inputs import clipping, closed_share
from calibrant.kernels.fits import isotonic_rates, pooled_scores
from calibrant.kernels.ordering import ascending
from calibrant.metrics.bibliography import CONCORDANCE_PAPER, CORP_PAPER, INDEX_PAPER
from calibrant.metrics.calling import accepts_rows, check_choice, measure_function
from calibrant.metrics.certificates import (
    EPS,
    bracketed,
    cells_of,
    no_certificate,
    rounded,
    rounding,
    widened,
)
from calibrant.metrics.null_laws import SPIEGELHALTER
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import chunked_sum, dot, dots
from calibrant.results import Array, Certified, Result

CLIP = float(np.finfo(np.float64).eps)  # as scikit-learn does: a certain forecast that fails costs 36


@measure_function
def brier_score(forecasts: Forecasts) -> Certified:
    """Mean squared difference of outcome and prediction; a score, not an error: calibrated is not 0.

    A fractional outcome counts as the expectation over the 0/1 outcomes that it represents.

    Examples
    --------
    >>> brier_score([0, 1], [0.25, 0.75])
    0.0625
    """
    return Certified.point(_score(forecasts, forecasts.values, "brier", CLIP))


@measure_function
def log_loss(forecasts: Forecasts, *, clip: float = CLIP, normalised: bool = False) -> Certified:
    """Mean negative log likelihood, in nats.

    ``normalised=True`` divides by the entropy of the base rate: normalized cross entropy, which is 1 for
    always predicting the base rate and needs both outcomes. On the same records it ranks models as the log
    loss does. But it is not truthful: the entropy depends on the outcomes, so outcomes near one rate
    count for more, and a forecaster gains by leaning toward them.

    Parameters
    ----------
    normalised
        Whether to divide by the entropy of the base rate.

    Examples
    --------
    >>> round(log_loss([0, 1], [0.25, 0.75]), 6)
    0.287682
    """
    clipping("clip", clip)
    loss = _score(forecasts, forecasts.values, "log", clip)
    return Certified.point(loss / _entropy(forecasts) if normalised else loss)


def _entropy(forecasts: Forecasts) -> float:
    """Return the log loss of always predicting the base rate."""
    rates = np.array([forecasts.base_rate, float((forecasts.weights - forecasts.outcomes).sum())])
    if rates.min() <= 0:
        got = f"got base rate {forecasts.base_rate:g}"
        raise TooFewRecordsError("log_loss", "needs both outcomes to be normalized", got)
    return -float(rates @ np.log(rates))


@measure_function
def miscalibration(
    forecasts: Forecasts, *, score: Literal["brier", "log"] = "brier", clip: float = CLIP
) -> Certified:
    """CORP miscalibration: what the score would gain from the best monotone recalibration in hindsight.

    The MCB term of Dimitriadis, Gneiting & Jordan (2021). It is 0 when isotonic regression leaves the
    predictions as they are.

    Examples
    --------
    >>> round(miscalibration([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]), 6)
    0.135
    """
    return Certified.point(decompose(forecasts, score=score, clip=clip).miscalibration)


@dataclass(frozen=True, slots=True, repr=False)
class Decomposition(Result):
    """A mean score as miscalibration - discrimination + uncertainty, all in the score's own unit."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@accepts_rows
def decompose(
    forecasts: Forecasts, *, score: Literal["brier", "log"] = "brier", clip: float = CLIP
) -> Decomposition:
    """Split the Brier score or the log loss into miscalibration, discrimination and uncertainty (CORP).

    Examples
    --------
    >>> decompose([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]).uncertainty
    0.1875
    """
    check_choice("score", score, ("brier", "log"))
    clipping("clip", clip)
    mean = np.broadcast_to(forecasts.base_rate, forecasts.levels)
    raw, fitted, constant = (
        _score(forecasts, p, score, clip) for p in (forecasts.values, isotonic_curve(forecasts), mean)
    )
    # isotonic regression is optimal among monotone maps, so only rounding can make a term negative
    return Decomposition(raw, max(0.0, raw - fitted), max(0.0, constant - fitted), constant)


def isotonic_curve(forecasts: Forecasts) -> Array:
    """Return the non-decreasing outcome rate that fits best, per level (pool adjacent violators)."""
    rates = isotonic_rates(forecasts.outcomes / forecasts.weights, forecasts.weights)
    return np.clip(rates, 0.0, 1.0, out=rates)


def _score(forecasts: Forecasts, predictions: Array, score: str, clip: float) -> float:
    """Return the mean score of one prediction per level; outcomes weigh the loss of y = 1."""
    ones, weights, count = forecasts.outcomes, forecasts.weights, forecasts.levels
    if score == "brier":
        missed = chunked_sum(lambda part: ones[part] * (1 - predictions[part]) ** 2, count)
        return missed + chunked_sum(lambda part: (weights[part] - ones[part]) * predictions[part] ** 2, count)

    def safe(part: slice) -> Array:
        return np.clip(predictions[part], clip, 1 - clip)

    hit = chunked_sum(lambda part: ones[part] * np.log(safe(part)), count)
    return -(hit + chunked_sum(lambda part: (weights[part] - ones[part]) * np.log1p(-safe(part)), count))


def _costs(forecasts: Forecasts, settings: Settings) -> tuple[Array, Array]:
    """Return what an outcome 0 costs at each level, and how much more an outcome 1 does."""
    v, clip = forecasts.values, settings.get("clip")
    if clip is None or settings.get("score") == "brier":
        return v**2, 1 - 2 * v
    safe = np.clip(v, clip, 1 - clip)
    miss, hit = -np.log1p(-safe), -np.log(safe)
    return miss, hit - miss


def _tables(forecasts: Forecasts, outcomes: Array, weights: Array, settings: Settings) -> Array | None:
    """Score many data sets; normalized scores are not linear in the outcomes."""
    if settings.get("normalised"):
        return None
    miss, more = _costs(forecasts, settings)
    return dots(outcomes, more) + dots(weights, miss)


def _mean(forecasts: Forecasts, settings: Settings) -> float | None:
    if settings.get("normalised"):
        return None
    miss, more = _costs(forecasts, settings)
    return dot(forecasts.weights, miss + forecasts.values * more)


def _batch(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    mean = _mean(forecasts, settings)
    return None if mean is None else dots(residuals, _costs(forecasts, settings)[1]) + mean


def _removable(forecasts: Forecasts, outcomes: Array, weights: Array, settings: Settings) -> Array | None:
    """CORP miscalibration, by one arithmetic whether machine code has been loaded or not."""
    if settings["score"] not in ("brier", "log"):
        return None
    pooled_scores.prepare(outcomes.size)
    raw = _tables(forecasts, outcomes, weights, settings)
    fitted = pooled_scores(outcomes, weights, settings["score"] == "log", float(settings["clip"]))
    return np.asarray(np.maximum(0.0, np.asarray(raw) - fitted))


@brier_score.certificate
def _brier_bounds(forecasts: Forecasts, measured: Certified, _: Settings) -> Certified:
    """Exact: y (1 - v)^2 + (1 - y) v^2 = y (1 - v) + (1 - y) v - v (1 - v), and the three sums are kept."""
    cells = cells_of(forecasts)
    value = float((cells.over + cells.under - cells.spread).sum())
    return bracketed(measured, value - rounding(forecasts), value + rounding(forecasts))


@log_loss.certificate
def _log_loss_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Bound the loss of the ones and of the zeros of each cell by convexity, given their mean prediction."""
    if settings["normalised"]:
        raise no_certificate("log-loss", "got normalised=True")
    cells, clip = cells_of(forecasts), float(settings["clip"])
    ones, zeros = forecasts.outcomes, forecasts.weights - forecasts.outcomes
    # a one costs -log(v), a zero -log(1 - v): the same bound for both, in v and in 1 - v
    first = _log_bounds(ones, ones - cells.under, cells.low, cells.high, clip, forecasts)
    second = _log_bounds(zeros, zeros - cells.over, 1 - cells.high, 1 - cells.low, clip, forecasts)
    slack = 64 * rounding(forecasts)  # no loss exceeds -log(EPS) = 36 by default
    return bracketed(measured, first[0] + second[0] - slack, first[1] + second[1] + slack)


@log_loss.rounding
def _normalised_rounded(forecasts: Forecasts, measured: Certified) -> Certified:
    """Bound what rounding moves of loss / entropy: the rarer rate may be a difference of few digits."""
    error, rate = rounding(forecasts), min(forecasts.base_rate, 1 - forecasts.base_rate)
    if not rate > 4 * error:
        raise no_certificate("log-loss", "the rarer outcome weighs no more than rounding")
    entropy = _entropy(forecasts)
    moved = 64 * error + measured.value * error * (
        2 - 2 * np.log(rate)
    )  # |d entropy / d rate| < 1 - log(rate)
    return widened(rounded(forecasts, measured), 2 * float(moved) / entropy)


def _log_bounds(
    mass: Array, moment: Array, low: Array, high: Array, clip: float, forecasts: Forecasts
) -> tuple[float, float]:
    """Bound sum of w (-log v) over records in [low, high] of given total weight and total w v."""
    # Below by Jensen, above by the chord; where clipping at the low end spoils convexity, by the ends.
    kept = mass > 0
    mass, low, high = mass[kept], low[kept], high[kept]
    error = 4 * EPS * (forecasts.counts[kept] + 8) * forecasts.weights[kept] / mass
    mean = moment[kept] / mass
    least = -np.log(np.clip(np.clip(mean + error, low, high), clip, 1 - clip))
    at_low, at_high = (-np.log(np.clip(end, clip, 1 - clip)) for end in (low, high))
    share = np.divide(
        high - np.clip(mean - error, low, high), high - low, out=np.zeros_like(low), where=high > low
    )
    most = at_high + share * (at_low - at_high)
    least, most = np.where(low < clip, at_high, least), np.where(low < clip, at_low, most)
    return dot(mass, least), dot(mass, most)


SCORE_MEASURES = (
    Measure(
        "brier",
        brier_score,
        words="Brier score",
        family="scores",
        headline=True,
        meaning="mean squared error of the prediction (calibration and sharpness together)",
        complete=False,
        continuous=True,
        sound=True,
        truthful="strict",
        lipschitz=2.0,
        null=Null(_batch, tables=_tables, mean=_mean, law=SPIEGELHALTER, two_sided=True),
        citation="Brier 1950, Verification of forecasts expressed in terms of probability",
    ),
    Measure(
        "brier-mcb",
        miscalibration,
        words="miscalibration in the Brier score",
        family="scores",
        headline=True,
        meaning="part of the Brier score that the best monotone recalibration would remove",
        null=Null(tables=_removable),
        citation=CORP_PAPER,
    ),
    Measure(
        "log-loss",
        log_loss,
        family="scores",
        meaning="mean negative log likelihood in nats (calibration and sharpness together)",
        complete=False,
        largest=math.inf,
        continuous=True,
        sound=True,
        truthful="strict",
        decisive=("normalised",),
        null=Null(_batch, tables=_tables, mean=_mean, two_sided=True),
        citation="Good 1952, Rational decisions",
    ),
    Measure(
        "log-mcb",
        miscalibration,
        words="miscalibration in the log loss",
        options={"score": "log"},
        family="scores",
        meaning="part of the log loss that the best monotone recalibration would remove",
        largest=math.inf,
        null=Null(tables=_removable),
        citation=CORP_PAPER,
    ),
)


@measure_function
def integrated_calibration_index(forecasts: Forecasts, *, quantile: float | None = None) -> Certified:
    """Mean distance between prediction and recalibrated prediction (ICI; Austin & Steyerberg 2019).

    `quantile=0.5` and `0.9` give E50 and E90. The recalibrated prediction here is the isotonic fit, which
    needs no bandwidth; the authors used loess, so figures differ slightly.

    Parameters
    ----------
    quantile
        0.5 for E50, 0.9 for E90; the mean if absent.

    Examples
    --------
    >>> round(integrated_calibration_index([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]), 6)
    0.35
    """
    gap = isotonic_curve(forecasts)
    gap -= forecasts.values
    np.abs(gap, out=gap)
    if quantile is None:
        return Certified.point(dot(forecasts.weights, gap))
    closed_share("quantile", quantile)
    order, ascending_gap = ascending(gap)
    below = np.cumsum(forecasts.weights[order])  # rounding keeps its end from being 1
    reached = below >= quantile * below[-1] - 1e-12
    return Certified.point(float(ascending_gap[np.argmax(reached)]))


_MEDIAN_GAP = Measure(
    "e50",
    integrated_calibration_index,
    words="median calibration gap",
    options={"quantile": 0.5},
    family="regression",
    meaning="median distance between the prediction and its isotonic recalibration (not loess)",
    symmetric=False,
    cost="O(m log m)",
    citation=INDEX_PAPER,
)
CALIBRATION_INDEX_MEASURES = (
    Measure(
        "ici",
        integrated_calibration_index,
        family="regression",
        meaning="mean distance between the prediction and its isotonic recalibration (not loess)",
        citation=INDEX_PAPER,
    ),
    _MEDIAN_GAP,
    replace(
        _MEDIAN_GAP,
        name="e90",
        words="90th percentile of the calibration gap",
        options={"quantile": 0.9},
        meaning="distance from the isotonic recalibration (not loess) that 90% of records stay below",
    ),
)


@measure_function
def c_statistic(forecasts: Forecasts) -> Certified:
    """Probability that an event has a higher prediction than a non-event (AUC); ties count one half.

    A measure of discrimination: any increasing change of the predictions leaves it as it is. As the
    statistic of a test it asks whether predictions rank worse than they would if they were calibrated.

    Examples
    --------
    >>> c_statistic([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    if not (forecasts.outcomes > 0).any() or not (forecasts.outcomes < forecasts.weights).any():
        got = f"got base rate {forecasts.base_rate:g}"
        raise TooFewRecordsError("the c-statistic", "needs both outcomes", got)
    return Certified.point(float(_concordances(forecasts.outcomes[None], forecasts.weights[None])[0]))


def _concordances(outcomes: Array, weights: Array) -> Array:
    """Return the c-statistic of each row of outcomes; infinity where one kind is missing."""
    others = weights - outcomes
    events, rest = outcomes.sum(axis=1), others.sum(axis=1)
    below = np.cumsum(others, axis=1) - others / 2
    pairs, known = np.einsum("ij,ij->i", outcomes, below), (events > 0) & (rest > 0)
    pairs = np.minimum(pairs, events * rest)  # rounding may take a sum beyond
    return np.asarray(np.divide(pairs, events * rest, out=np.full(len(outcomes), np.inf), where=known))


@c_statistic.rounding
def _concordance_rounded(forecasts: Forecasts, measured: Certified) -> Certified:
    """Bound what rounding moves: the weight of non-events is a difference of sums."""
    margin = 4 * rounding(forecasts) * (1 + 1 / max(1 - forecasts.base_rate, EPS))
    wide = widened(measured, margin)
    return bracketed(measured, max(0.0, wide.lower), min(1.0, wide.upper))


@c_statistic.certificate
def _concordance_bounds(forecasts: Forecasts, measured: Certified, _: Settings) -> Certified:
    """Pairs in one cell may be in either order."""
    inside = np.where(forecasts.extents > 0, forecasts.outcomes * (forecasts.weights - forecasts.outcomes), 0)
    tied = float(inside.sum()) / (forecasts.base_rate * (1 - forecasts.base_rate)) / 2
    return _concordance_rounded(forecasts, widened(measured, tied))


C_STATISTIC = Measure(
    "c-statistic",
    c_statistic,
    words="c-statistic",
    family="regression",
    meaning="probability that an event has a higher prediction than a non-event (AUC)",
    complete=False,
    ideal=1.0,
    signed=True,
    needs_both_outcomes=True,
    null=Null(tables=lambda _, outcomes, weights, settings: _concordances(outcomes, weights)),
    citation=CONCORDANCE_PAPER,
)
