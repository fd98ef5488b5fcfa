"""Limit laws of test statistics under calibration, with tails that are right to log p-values of 1e-300.

The cumulative curve of calibrated forecasts, divided by its standard deviation, tends to Brownian motion on
[0, 1]. Its series serve near 0, and their complements (Jacobi's transformation) in the tail: nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.parallel import TERMS_AT_ONCE, chunked_sum, in_blocks
from calibrant.results import Array

_SURE = 0.1  # below, the chance to exceed is 1 to the last digit, and squares may underflow
_SWITCH = 1.5  # both series converge fast here
_FARTHEST = 1e150  # beyond, no logarithm of a tail can be held
_TERMS = np.arange(1.0, 9.0)
_SQUARES = (_TERMS - 0.5) ** 2 * math.pi**2
_SIGNS = np.where(np.arange(8) % 2 == 0, 1.0, -1.0)


def log_range_tail(x: float) -> float:
    """Return log P(max B - min B > x) for Brownian motion B on [0, 1] (Kuiper's statistic; Feller 1951)."""
    return float(log_range_tails(np.array([x]))[0])


def log_range_tails(x: Array) -> Array:
    logs = np.zeros(len(x))
    near, far = (x > _SURE) & (x < _SWITCH), x >= _SWITCH
    if near.any():
        small = x[near, None]
        terms = (8 / small**2 + 2 / _SQUARES) * np.exp(-2 * _SQUARES / small**2)
        logs[near] = np.log1p(-np.sum(terms, axis=1))
    if far.any():
        logs[far] = _alternating(math.log(8) + np.log(_TERMS), x[far], _TERMS)
    return logs


def log_largest_tail(x: float) -> float:
    """Return log P(max |B| > x) for Brownian motion B on [0, 1] (the Kolmogorov-Smirnov statistic)."""
    if x <= _SURE:
        return 0.0
    k = np.arange(1.0, 16.0, 2.0)
    if x < _SWITCH:
        return math.log1p(
            -4 / math.pi * float(np.sum(_SIGNS / k * np.exp(-(k**2) * math.pi**2 / (8 * x**2))))
        )
    return float(_alternating(np.full(8, math.log(4)), np.array([x]), k)[0])


def log_normal_tail(x: float) -> float:
    return float(log_normal_tails(np.array([x]))[0])


def log_normal_tails(x: Array) -> Array:
    from scipy.special import log_ndtr

    return np.minimum(0.0, math.log(2) + log_ndtr(-np.abs(x)))


def log_chi_square_tail(x: float, degrees: float) -> float:
    """Return log P(chi-square > x), by the leading factor of the tail once the tail itself underflows."""
    from scipy.special import gammaincc, gammaln

    if x == math.inf:
        return -math.inf
    a, t = degrees / 2, x / 2
    tail = float(gammaincc(a, t))
    if tail > 1e-290:
        return math.log(tail)
    return (a - 1) * math.log(t) - t - float(gammaln(a)) + _log_continued_fraction(a, t)


def _log_continued_fraction(a: float, t: float) -> float:
    """Return log(gamma(a, t) / (t^(a-1) e^-t)), by Legendre's continued fraction from its far end."""
    rest = 0.0
    for k in range(200, 0, -1):
        rest = k * (k - a) / (t + 2 * k + 1 - a - rest)
    return math.log(t) - math.log(t + 1 - a - rest)


def _alternating(log_factors: Array, x: Array, multiples: Array) -> Array:
    """Return log sum_k (-1)^k exp(log_factors_k) Q(multiples_k x) per x, Q the normal tail, led by k = 0."""
    from scipy.special import log_ndtr

    logs = log_factors + log_ndtr(-np.minimum(x, _FARTHEST)[:, None] * multiples)
    rest = np.sum(_SIGNS[1:] * np.exp(logs[:, 1:] - logs[:, :1]), axis=1)
    return np.asarray(np.where(x < _FARTHEST, np.minimum(0.0, logs[:, 0] + np.log1p(rest)), -np.inf))


def simulated_extremes(p: Array, ends: npt.NDArray[np.intp], draws: int, seed: int) -> Array:
    """Return how far above and below 0 the sums of y - p go at `ends`, for outcomes y drawn from p."""
    is_end = np.zeros(len(p), dtype=np.bool_)
    is_end[ends] = True

    def simulate(rng: np.random.Generator, rows: int) -> Array:
        totals, highest, lowest = np.zeros((3, rows))
        size = len(p) if rows > 1 else TERMS_AT_ONCE  # long rows come one by one, a part at a time
        for start in range(0, len(p), size):
            part = slice(start, start + size)
            sums = (rng.random((rows, len(p[part]))) < p[part]) - p[part]
            sums[:, 0] += totals
            np.cumsum(sums, axis=1, out=sums)
            totals = sums[:, -1].copy()
            sums = sums if is_end[part].all() else sums[:, is_end[part]]
            highest = np.maximum(highest, sums.max(axis=1, initial=0.0))
            lowest = np.minimum(lowest, sums.min(axis=1, initial=0.0))
        return np.column_stack([highest, -lowest])

    return in_blocks(simulate, draws, width=len(p), seed=seed)


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The limit law of statistic / scale."""

    name: str
    log_tail: Callable[[float], float]
    mean: float
    scale: Callable[[Forecasts], float]
    # how much each level's residual counts, where not all count alike: the law is a limit of that sum as well
    leverage: Callable[[Forecasts], Array] | None = None
    fractions: bool = False  # whether the statistic estimates variances where outcomes are fractions


def null_deviation(forecasts: Forecasts) -> float:
    """Return sigma, the standard deviation of the whole curve's end under calibration."""
    return math.sqrt(forecasts.null_variance)


def _brier_deviation(forecasts: Forecasts) -> float:
    squares = forecasts.squared_weights

    def terms(part: slice) -> Array:  # the score of a record is v^2 + y (1 - 2 v): Spiegelhalter 1986
        v = forecasts.values[part]
        return np.asarray(squares[part] * (v * (1 - v) * (1 - 2 * v) ** 2))

    return math.sqrt(chunked_sum(terms, forecasts.levels))


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
    leverage=lambda forecasts: 1 - 2 * forecasts.values,  # what a residual adds to the score
)
