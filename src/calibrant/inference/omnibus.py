"""The test that calibration_test takes unless told otherwise: one that has no blind spot.

Kuiper's range sees whatever adds up over an interval of predictions: shifts, bumps. Cox's score, the
derivative of the likelihood of logit E[y] = a + b logit(v) at a = 0, b = 1, sees a wrong scale, for which
Kuiper is weak. The statistic is the smaller of their two limit p-values, on a log scale; its own
distribution is simulated like that of any other statistic, so that looking twice costs nothing in truth.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.inference.continuous import as_if_known, deviation_of_continuous, squared_residuals
from calibrant.inference.upside_down import ROUNDING, upside_down
from calibrant.kernels.curves import curve_extremes
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.laws import Law
from calibrant.measures.registry.null import Null
from calibrant.measures.registry.papers import BESIDE_MEASURES
from calibrant.measures.registry.row import Measure
from calibrant.measures.registry.tails import log_normal_tails, log_range_tails
from calibrant.measures.regression import logits
from calibrant.results import Array, Certified
from calibrant.sums import dot, summed

SEEN = 3.24  # standard deviations: a bias that a two-sided 5 % test sees with probability 90 %
SAME = 1e-20  # variance of the logits below which predictions count as one: rounding would decide


@public
def omnibus(forecasts: Forecasts) -> Certified:
    """The stronger evidence against calibration of two: Kuiper's range and Cox's score.

    -log of the smaller of their limit p-values; both are in the details. It grows with n, so it is a test
    statistic and no measure. It is infinite where a prediction of 0 or 1 was wrong: calibrated ones never
    are; `impossible` in the details is the share of such records, by weight. `visible_bias` is the least
    common bias that would be noticed with probability 90 %, and `upside_down` is there where higher
    predictions go with fewer events.

    >>> round(omnibus([0, 0, 0, 1], [0.6, 0.7, 0.8, 0.9]), 6)
    3.030509
    """
    parts = _Parts.of(forecasts)
    kuiper, cox = (float(part[0]) for part in parts.log_pvalues(forecasts.residuals[None]))
    wrong = float(np.abs(forecasts.residuals[parts.certain]).sum())
    turned: dict[str, Any] = {"upside_down": True} if upside_down(forecasts) else {}
    return Certified.point(
        math.inf if wrong > ROUNDING else -min(kuiper, cox),
        kuiper_pvalue=math.exp(kuiper),
        cox_pvalue=math.exp(cox),
        bias_z=parts.bias(forecasts.residuals),
        slope_z=parts.slope_score(forecasts.residuals),
        impossible=wrong,
        visible_bias=visible_bias(forecasts),
        **turned,
    )


def visible_bias(forecasts: Forecasts) -> float:
    """Return the least common bias that is noticed with probability 90 %: what is smaller may go unseen.

    With n records of which none disagrees, a rate up to 3 / n is still possible at 95 %.
    """
    records = 1.0 / float(forecasts.squared_weights.sum())
    return min(1.0, max(SEEN * math.sqrt(forecasts.null_variance), 3.0 / records))


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """All that the two statistics need besides residuals."""

    deviation: float  # of the end of the curve
    whole: float  # the same as the score has it
    slope: Array | None  # what residuals add to the standardised score of the slope; None without one
    certain: npt.NDArray[np.intp]  # levels that allow one outcome only
    normal: Callable[[Array], Array]  # what takes out that the deviation is an estimate, where it is

    @classmethod
    def of(cls, forecasts: Forecasts) -> _Parts:
        variance = _variances(forecasts)
        whole = math.sqrt(float(variance.sum()))
        deviation = (
            math.sqrt(forecasts.null_variance) if forecasts.binary else deviation_of_continuous(forecasts)
        )
        away = leverage(forecasts, variance)
        spread = summed(lambda part: variance[part] * away[part] ** 2, len(away))
        slope = np.divide(away, math.sqrt(spread), out=away) if spread > SAME * whole**2 else None
        certain = np.flatnonzero((forecasts.values == 0) | (forecasts.values == 1))
        normal = (lambda x: x) if forecasts.binary else functools.partial(as_if_known, forecasts=forecasts)
        return cls(deviation, whole, slope, certain, normal)

    def bias(self, residuals: Array) -> float:
        """Return the total residual in standard deviations: positive where outcomes exceed predictions."""
        return float(residuals.sum()) / self.whole if self.whole > 0 else 0.0

    def slope_score(self, residuals: Array) -> float:
        """Return the standardised score of the slope: negative where predictions are too extreme."""
        return 0.0 if self.slope is None else dot(residuals, self.slope)

    def log_pvalues(self, residuals: Array) -> tuple[Array, Array]:
        """Return those of Kuiper and of the score, one each for every row of residuals."""
        low, high = curve_extremes(residuals).T
        if self.deviation == 0 or self.whole == 0:
            only = np.where(high - low > ROUNDING, -np.inf, 0.0)
            return only, only
        kuiper = log_range_tails(self.normal((high - low) / self.deviation))
        end = residuals.sum(axis=1) / self.whole
        if self.slope is None:
            return kuiper, log_normal_tails(end)
        # not @: its threads would fight those that share out the draws
        slope = np.einsum("ij,j->i", residuals, self.slope)
        return kuiper, -(end**2 + slope**2) / 2  # chi-square, two degrees of freedom


def leverage(forecasts: Forecasts, variance: Array | None = None) -> Array:
    """Return what a residual adds to the score of the slope, the intercept's taken out.

    Predictions of 0 and 1 have no logit, and no residual either unless calibration is impossible.
    """
    variance = _variances(forecasts) if variance is None else variance
    away, total = logits(forecasts), float(variance.sum())
    if total > 0:
        away -= dot(variance, away) / total
    away[variance <= 0] = 0.0
    return away


def _variances(forecasts: Forecasts) -> Array:
    """Return the variance of each level's residual under calibration; that of fractions is estimated."""
    if not forecasts.binary:
        return squared_residuals(forecasts)
    return np.asarray(forecasts.squared_weights * forecasts.values * (1 - forecasts.values))


def _log_tail(x: float) -> float:
    """Return log(2 q - q^2), q = exp(-x): a bound on the limit of P(statistic >= x), close in the tail.

    Each part stays below x with probability 1 - q. In the limit both say that a Gaussian path lies in a
    convex set that is symmetric about 0, so together they hold with probability (1 - q)^2 at least
    (the Gaussian correlation inequality; Royen 2014).
    """
    return math.log(2 - math.exp(-x)) - x


def omnibus_row(forecasts: Forecasts, options: Mapping[str, Any]) -> Measure:
    """Return the test as a row of the registry, for the engine of all tests."""
    own = functools.cache(lambda: _Parts.of(forecasts))  # draws come in many blocks
    own_leverage = functools.cache(lambda: leverage(forecasts))

    def batch(others: Forecasts, residuals: Array, settings: Mapping[str, Any]) -> Array:
        parts = own() if others is forecasts else _Parts.of(others)
        return np.asarray(-np.minimum(*parts.log_pvalues(residuals)))

    law = Law(
        "an upper bound, from Brownian range and chi-square",
        _log_tail,
        1.5,
        lambda forecasts: 1.0,
        leverage=lambda others: own_leverage() if others is forecasts else leverage(others),
        fractions=True,
    )
    return Measure(
        "omnibus",
        omnibus,
        words="omnibus statistic",
        family="classic",
        meaning="the smaller p-value of Kuiper's range and Cox's score, as -log",
        cost="O(m)",
        citation=BESIDE_MEASURES["omnibus"],
        null=Null(batch=batch, law=law),
    )
