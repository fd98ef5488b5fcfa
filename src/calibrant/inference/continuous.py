"""Standard deviation of the curve when outcomes are fractions of unknown variance."""

from __future__ import annotations

import math

import numpy as np

from calibrant.errors import TooFewRecordsError, sentence
from calibrant.forecasts import Forecasts
from calibrant.results import Array


def deviation_of_continuous(forecasts: Forecasts) -> float:
    """Estimate the standard deviation of the mean residual from the data, for outcomes between 0 and 1.

    Where predictions are distinct this is eq. (6) of measuring-multicalibration: differences of
    neighbouring residuals, so that a trend of the residuals cancels. Records that share a prediction are
    compared with each other instead, which needs no neighbours and does not depend on the order of rows.
    """
    residuals, weights = _records(forecasts)
    counts = forecasts.counts
    alone = np.repeat(counts == 1, counts)
    if np.count_nonzero(alone) == 1:  # no neighbour of its own kind: its square is all there is
        single = float(weights[alone][0] ** 2 * residuals[alone][0] ** 2)
    else:
        single = _between_neighbours(residuals[alone], weights[alone])
    return math.sqrt(single + _within_levels(residuals, weights, counts))


def as_if_known(statistic: Array | float, forecasts: Forecasts) -> Array:
    """Shrink a statistic that was divided by deviation_of_continuous, as an estimate, to a normal scale.

    Few records estimate their own noise badly, so that quotients by it have long tails: Student's. Wallace
    (1959, Bounds on normal approximations to Student's) maps them to normal quantiles, to 0.5 % here.
    """
    free = _degrees_of_freedom(forecasts)
    ratio = (8 * free + 1) / (8 * free + 3)
    return np.asarray(ratio * np.sqrt(2 * free * np.log(np.hypot(1.0, statistic / math.sqrt(free)))))


def _degrees_of_freedom(forecasts: Forecasts) -> float:
    """Return how many squares of independent normal numbers would vary as the estimated variance does.

    Differences of neighbours share records, so that n of them are worth 2 n / 3 (von Neumann 1941); a level
    of several records has one fewer than these. Unequal weights count as fewer records.
    """
    counts = forecasts.counts
    alone = int(np.count_nonzero(counts == 1))
    several = float((counts[counts > 1] - 1).sum())
    equal = 1 / (forecasts.n * float(forecasts.squared_weights.sum()))
    return max(1.0, (2 * max(0, alone - 1) / 3 + several) * equal)


def squared_residuals(forecasts: Forecasts) -> Array:
    """Sum the squared weighted residuals of the records of each level: an estimate of its null variance."""
    residuals, weights = _records(forecasts)
    starts = np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
    return np.asarray(np.add.reduceat((weights * residuals) ** 2, starts))


def _records(forecasts: Forecasts) -> tuple[Array, Array]:
    """Return the residual and the weight of every record."""
    outcomes = forecasts.record_outcomes
    if outcomes is None and forecasts.n > 1:
        hint = "test the rows themselves, or sketch 0/1 outcomes"
        result = "a sketch keeps their sums, not how they vary"
        raise TooFewRecordsError(
            sentence("fractional outcomes", "cannot be tested from this sketch", result, hint)
        )
    if outcomes is None or forecasts.n < 2:
        raise TooFewRecordsError(
            sentence("a variance estimate", "needs two records or more", f"got {forecasts.n}")
        )
    equal = np.full(forecasts.n, 1.0 / forecasts.n)
    weights = equal if forecasts.record_weights is None else forecasts.record_weights
    return outcomes - np.repeat(forecasts.values, forecasts.counts), weights


def _between_neighbours(residuals: Array, weights: Array) -> float:
    """Return eq. (6), with other weights, times the squared share of weight that these records have.

    A squared difference of neighbours is twice the variance of one, so it stands for w^2 and w'^2 of the two.
    Eq. (6) has (w + w')^2 / 2 in place of w^2 + w'^2: the same for equal weights, too little for others.
    """
    if len(residuals) == 0:
        return 0.0
    squared = weights**2
    total = float(squared.sum())
    squares = float(np.diff(residuals) ** 2 @ (squared[:-1] + squared[1:])) / 2
    return squares * total / (2 * total - float(squared[0] + squared[-1]))


def _within_levels(residuals: Array, weights: Array, counts: np.ndarray) -> float:
    """Sum over levels of two records or more: squared weights times the unbiased variance around the mean."""
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    mean = np.add.reduceat(residuals, starts) / counts
    apart = np.add.reduceat((residuals - np.repeat(mean, counts)) ** 2, starts)
    several = counts > 1
    squared_weights = np.add.reduceat(weights**2, starts)
    return float(np.sum((squared_weights * apart)[several] / (counts[several] - 1)))
