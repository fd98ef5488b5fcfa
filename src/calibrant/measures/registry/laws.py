"""Limit laws of test statistics under calibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.measures.registry.tails import log_largest_tail, log_normal_tail, log_range_tail
from calibrant.results import Array
from calibrant.sums import summed


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The limit law of statistic / scale: its name, the log of its upper tail, its mean.

    `leverage` says how much each level's residual counts, where not all count alike: the law is a limit of
    that sum as well. `fractions` says that the statistic estimates variances where outcomes are fractions.
    """

    name: str
    log_tail: Callable[[float], float]
    mean: float
    scale: Callable[[Forecasts], float]
    leverage: Callable[[Forecasts], Array] | None = None
    fractions: bool = False


def null_deviation(forecasts: Forecasts) -> float:
    """Return sigma, the standard deviation of the whole curve's end under calibration."""
    return math.sqrt(forecasts.null_variance)


def _brier_deviation(forecasts: Forecasts) -> float:
    squares = forecasts.squared_weights

    def terms(part: slice) -> Array:  # the score of a record is v^2 + y (1 - 2 v): Spiegelhalter 1986
        v = forecasts.values[part]
        return np.asarray(squares[part] * (v * (1 - v) * (1 - 2 * v) ** 2))

    return math.sqrt(summed(terms, forecasts.levels))


def _brier_leverage(forecasts: Forecasts) -> Array:
    """Return what a residual adds to the Brier score: next to nothing near 1/2, however many lie there."""
    return np.asarray(1 - 2 * forecasts.values)


BROWNIAN_RANGE = Law("range of Brownian motion", log_range_tail, 2 * math.sqrt(2 / math.pi), null_deviation)
BROWNIAN_LARGEST = Law(
    "largest absolute value of Brownian motion", log_largest_tail, math.sqrt(math.pi / 2), null_deviation
)
NORMAL = Law("normal", log_normal_tail, math.sqrt(2 / math.pi), null_deviation)
SPIEGELHALTER = Law(
    "normal (Spiegelhalter's z)",
    log_normal_tail,
    math.sqrt(2 / math.pi),
    _brier_deviation,
    leverage=_brier_leverage,
)
