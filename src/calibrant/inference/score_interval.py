"""Intervals of Cox's slope and intercept, by inverting their score tests.

An estimate of the slope is skewed and at times infinite, so resampling it misses on one side. Its score, the
derivative of the likelihood, is a sum over records: the interval holds the slopes at which that sum is
no farther from 0 than its standard deviation allows (Boos 1992, On generalized score tests).

The sum is skewed too, and where it is large by chance the squares that the records show are small: judged by
these, true slopes fall below the interval three times as often as above. So the slope is judged by the
variance that the model implies, times what the records show at the fit itself wherever that is more, and
the side to which the sum is skewed is allowed what Cornish and Fisher (1938) add to a quantile. The other
side is allowed no less than without skewness. The intercept has no such bias; it is judged by the
larger of the two variances.

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
DOUBLINGS = 6  # of the half-width of the usual interval; an end beyond is infinite
FARTHEST_LOGIT = 50.0  # shift beyond the logits themselves, from which on all rates are 0 or 1
ROUNDING = 1e-13  # of a sum, relative to its terms
NEWTON_STEPS = 100  # at most; steps that leave the bracket halve it


@dataclass(frozen=True, slots=True, eq=False)
class _Powers:
    """Sums of w^2, w^3, w^2 y and w^2 y^2 over the records of each level."""

    two: Array
    three: Array
    outcome: Array
    outcome_squared: Array

    @classmethod
    def of(cls, forecasts: Forecasts) -> _Powers:
        """Sum over the records where they are known; else as if those of a level weighed the same."""
        squares, outcomes = forecasts.squared_weights, forecasts.record_outcomes
        if outcomes is None:
            ones = squares * (forecasts.outcomes / forecasts.weights)
            return cls(squares, squares**2 / forecasts.weights, ones, ones)
        weights = forecasts.record_weights
        each = np.full(forecasts.n, 1 / forecasts.n) if weights is None else weights
        starts = np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
        terms = (each**3, each**2 * outcomes, each**2 * outcomes**2)
        return cls(squares, *(np.add.reduceat(term, starts) for term in terms))

    def shown(self, rates: Array) -> Array:
        """Return the sum of w^2 (y - rate)^2 per level."""
        return self.outcome_squared - 2 * rates * self.outcome + rates**2 * self.two


def score_interval(
    forecasts: Forecasts, name: str, *, value: float, confidence: float
) -> tuple[float, float]:
    """Return the interval of "slope" or "intercept"."""
    from scipy.special import stdtrit

    refuse_certain(forecasts, name)
    records = 1 / float(forecasts.squared_weights.sum())  # as many as weigh the same are as noisy
    free = max(1.0, records - (2 if name == "slope" else 1))
    reach = float(stdtrit(free, (1 + confidence) / 2))
    if name == "slope":
        score, unit = _slope_score(forecasts, value, reach, records / free)
    else:
        score, unit = _intercept_score(forecasts, value)
    return _end(score, value, -unit * reach, reach), _end(score, value, unit * reach, -reach)


def refuse_certain(forecasts: Forecasts, name: str, whose: str = "the predictions") -> None:
    """Refuse predictions at 0 and 1, or within 1e-12 of them: no sample bounds what they do to the slope."""
    certain = int(forecasts.counts[np.abs(logits(forecasts)) >= LARGEST_LOGIT].sum())
    if certain:
        rule = f"must lie between 0 and 1 for an interval of the {name}"
        hint = "leave these rows out and say how many they are, or look at another measure"
        raise InvalidInputError(sentence(whose, rule, f"{certain:,} are 0 or 1", hint))


def _end(score: Callable[[float], float], value: float, step: float, level: float) -> float:
    """Walk from the value until the score, which falls, reaches this level; infinite if it never does."""
    inner, outer = value, value + step
    for _ in range(DOUBLINGS + 1):
        reached = score(outer)
        if (reached >= level) if level > 0 else (reached <= level):
            return root(lambda at: score(at) - level, inner, outer, 1e-6 * abs(step) + 1e-12)
        inner, outer = outer, value + 2 * (outer - value)
    return float(np.copysign(np.inf, -level))


Score = tuple[Callable[[float], float], float]


def _slope_score(forecasts: Forecasts, value: float, reach: float, small: float) -> Score:
    """Return the standardised score of the slope, the intercept fitted anew, and the usual standard error.

    `small` is the factor by which squared residuals of a fit to few records are too small.
    """
    weights, powers = forecasts.weights, _Powers.of(forecasts)
    logit = logits(forecasts) - dot(weights, logits(forecasts))
    rates_at = _Profile(forecasts, logit)

    def parts(slope: float) -> tuple[Array, Array, float]:
        rates = rates_at(slope)
        spread = weights * rates * (1 - rates)
        total = float(spread.sum())
        away = logit - dot(spread, logit) / total if total > 0 else logit
        return rates, away, dot(powers.two * rates * (1 - rates), away**2)

    rates, away, implied = parts(value)
    shown = dot(powers.shown(rates), away**2) * small
    more = max(1.0, shown / implied) if implied > 0 else 1.0
    information = dot(weights * rates * (1 - rates), away**2)

    def score(slope: float) -> float:
        rates, away, implied = parts(slope)
        if not implied > (ROUNDING * dot(weights, np.abs(away))) ** 2:
            return 0.0  # all rates are 0 or 1: what is left of the score is rounding
        reached = dot(forecasts.outcomes - weights * rates, away) / np.sqrt(more * implied)
        third = dot(powers.three * rates * (1 - rates) * (1 - 2 * rates), away**3)
        skewed = third / implied / np.sqrt(implied)  # not third / implied**1.5, which may underflow
        return _without_skewness(float(reached), float((reach**2 - 1) / 6 * skewed))

    return score, float(np.sqrt(implied)) / information if information > 0 else 1.0


def _without_skewness(score: float, skewed: float) -> float:
    """Take from a score what skewness adds to its quantile on that side.

    >>> _without_skewness(2.5, 0.5), _without_skewness(-2.5, 0.5), _without_skewness(0.2, 0.5)
    (2.0, -2.5, 0.0)
    """
    return score if score * skewed <= 0 else float(np.copysign(max(0.0, abs(score) - abs(skewed)), score))


def _intercept_score(forecasts: Forecasts, value: float) -> Score:
    """Return the standardised score of the intercept at slope 1, and the usual standard error."""
    from scipy.special import expit

    logit, powers = logits(forecasts), _Powers.of(forecasts)

    def score(intercept: float) -> float:
        rates = expit(logit + intercept)
        shown = float(powers.shown(rates).sum())
        deviation = np.sqrt(max(shown, dot(powers.two, rates * (1 - rates))))
        return float((forecasts.outcomes - forecasts.weights * rates).sum() / deviation)

    rates = expit(logit + value)
    spread = rates * (1 - rates)
    return score, float(np.sqrt(dot(powers.two, spread)) / dot(forecasts.weights, spread))


class _Profile:
    """The rates with a given slope that fit the base rate, by Newton steps that stay in a bracket."""

    def __init__(self, forecasts: Forecasts, logit: Array) -> None:
        self._weights, self._base, self._logit = forecasts.weights, forecasts.base_rate, logit
        with np.errstate(divide="ignore"):  # of outcomes 0 and 1, weights may let one kind vanish
            self._start = float(np.log(self._base) - np.log1p(-self._base))

    def __call__(self, slope: float) -> Array:
        """Return one rate per level."""
        from scipy.special import expit

        scaled = slope * self._logit
        low, high = -float(scaled.max()) - FARTHEST_LOGIT, -float(scaled.min()) + FARTHEST_LOGIT
        shift = min(max(self._start, low), high)
        for _ in range(NEWTON_STEPS):
            rates = expit(scaled + shift)
            surplus = self._base - dot(self._weights, rates)
            low, high = (shift, high) if surplus > 0 else (low, shift)
            spread = dot(self._weights, rates * (1 - rates))
            step = surplus / spread if spread > 0 else np.inf
            last, shift = shift, shift + step
            if not low < shift < high:
                shift = (low + high) / 2
            if abs(shift - last) <= 1e-11 * (1 + abs(shift)):
                break
        return np.asarray(expit(scaled + shift))
