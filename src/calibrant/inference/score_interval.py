"""Intervals of Cox's slope and intercept, by inverting their score tests.

An estimate of the slope is skewed and at times infinite, so resampling it misses on one side. Its score, the
derivative of the likelihood, is a sum over records: the interval holds the slopes at which that sum is
no farther from 0 than its standard deviation allows (Boos 1992, On generalized score tests). The
standard deviation is the larger of what the records show and what the model implies.

Predictions of exactly 0 and 1 have logits without end: a few of them that fail decide the slope of the
population, and most samples have none. No sample shows that, so there is no interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.measures.regression import LARGEST_LOGIT, logits
from calibrant.results import Array
from calibrant.sums import dot

LOGISTIC = ("slope", "intercept")
FARTHEST = 64.0  # half-widths of the usual interval; an end beyond is infinite


@dataclass(frozen=True, slots=True, eq=False)
class _Squares:
    """Sums of w^2, w^2 y and w^2 y^2 over the records of each level."""

    one: Array
    outcome: Array
    outcome_squared: Array

    @classmethod
    def of(cls, forecasts: Forecasts) -> _Squares:
        """Take them from the records where these are known; else weight and outcome count as unrelated."""
        outcomes = forecasts.record_outcomes
        if outcomes is None:
            ones = forecasts.squared_weights * (forecasts.outcomes / forecasts.weights)
            return cls(forecasts.squared_weights, ones, ones)
        weights = forecasts.record_weights
        squares = np.full(forecasts.n, forecasts.n**-2.0) if weights is None else weights**2
        starts = np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
        return cls(
            forecasts.squared_weights,
            np.add.reduceat(squares * outcomes, starts),
            np.add.reduceat(squares * outcomes**2, starts),
        )

    def variances(self, rates: Array) -> Array:
        """Return the sum of w^2 (y - rate)^2 per level."""
        return self.outcome_squared - 2 * rates * self.outcome + rates**2 * self.one


def score_interval(
    forecasts: Forecasts, name: str, *, value: float, confidence: float
) -> tuple[float, float]:
    """Return the interval of "slope" or "intercept"."""
    from scipy.special import stdtrit

    refuse_certain(forecasts, name)
    free = max(1.0, 1 / float(forecasts.squared_weights.sum()) - (2 if name == "slope" else 1))
    reach = float(stdtrit(free, (1 + confidence) / 2))
    score, width = (_slope_score if name == "slope" else _intercept_score)(forecasts)
    unit = width(value) * reach
    return _end(score, value, -unit, reach), _end(score, value, unit, -reach)


def refuse_certain(forecasts: Forecasts, name: str, whose: str = "the predictions") -> None:
    """Refuse predictions of 0 and 1, or so near that their logits are held: no sample bounds what they do."""
    certain = int(forecasts.counts[np.abs(logits(forecasts)) >= LARGEST_LOGIT].sum())
    if certain:
        rule = f"must lie between 0 and 1 for an interval of the {name}"
        hint = "clip them, to 0.001 and 0.999 say, or look at another measure"
        raise InvalidInputError(sentence(whose, rule, f"{certain:,} are 0 or 1", hint))


def _end(score: Callable[[float], float], value: float, step: float, level: float) -> float:
    """Walk from the value until the score, which falls, reaches this level; infinite if it never does."""
    inner, outer = value, value + step
    while (score(outer) < level) if level > 0 else (score(outer) > level):
        inner, outer = outer, value + 2 * (outer - value)
        if abs(outer - value) > FARTHEST * abs(step):
            return float(np.copysign(np.inf, step))
    return root(lambda at: score(at) - level, inner, outer, 1e-6 * abs(step) + 1e-12)


Score = tuple[Callable[[float], float], Callable[[float], float]]


def _slope_score(forecasts: Forecasts) -> Score:
    """Return the standardised score of the slope, the intercept fitted anew, and the usual standard error."""
    logit, weights = logits(forecasts), forecasts.weights
    squares = _Squares.of(forecasts)
    logit = logit - dot(weights, logit)

    def parts(slope: float) -> tuple[Array, Array, float]:
        rates = _rates(forecasts, slope * logit)
        spread = weights * rates * (1 - rates)
        total = float(spread.sum())
        away = logit - dot(spread, logit) / total if total > 0 else logit
        return rates, away, dot(spread, away**2)

    def score(slope: float) -> float:
        rates, away, _ = parts(slope)
        shown = dot(squares.variances(rates), away**2)
        implied = dot(squares.one * rates * (1 - rates), away**2)
        deviation = np.sqrt(max(shown, implied))
        return dot(forecasts.outcomes - weights * rates, away) / deviation if deviation > 0 else 0.0

    def width(slope: float) -> float:
        rates, away, information = parts(slope)
        implied = dot(squares.one * rates * (1 - rates), away**2)
        return float(np.sqrt(implied)) / information if information > 0 else 1.0

    return score, width


def _intercept_score(forecasts: Forecasts) -> Score:
    """Return the standardised score of the intercept at slope 1, and the usual standard error."""
    from scipy.special import expit

    logit, squares = logits(forecasts), _Squares.of(forecasts)

    def score(intercept: float) -> float:
        rates = expit(logit + intercept)
        shown = float(squares.variances(rates).sum())
        deviation = np.sqrt(max(shown, dot(squares.one, rates * (1 - rates))))
        return float((forecasts.outcomes - forecasts.weights * rates).sum() / deviation)

    def width(intercept: float) -> float:
        rates = expit(logit + intercept)
        spread = rates * (1 - rates)
        return float(np.sqrt(dot(squares.one, spread)) / dot(forecasts.weights, spread))

    return score, width


def _rates(forecasts: Forecasts, logit: Array) -> Array:
    """Return rates with these logits, shifted so that they fit the base rate."""
    from scipy.special import expit

    def surplus(shift: float) -> float:
        return forecasts.base_rate - dot(forecasts.weights, expit(logit + shift))

    most = float(np.abs(logit).max()) + 50.0
    return np.asarray(expit(logit + root(surplus, -most, most, 1e-10)))
