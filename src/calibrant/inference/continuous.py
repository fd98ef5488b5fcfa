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
    """Eq. (6), times the squared share of weight that these records have."""
    if len(residuals) == 0:
        return 0.0
    squares = np.diff(residuals) ** 2 @ (weights[:-1] + weights[1:]) ** 2
    total = float(weights.sum())
    return float(squares * total / (4 * (2 * total - weights[0] - weights[-1])))


def _within_levels(residuals: Array, weights: Array, counts: np.ndarray) -> float:
    """Sum over levels of two records or more: squared weights times the unbiased variance around the mean."""
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    mean = np.add.reduceat(residuals, starts) / counts
    apart = np.add.reduceat((residuals - np.repeat(mean, counts)) ** 2, starts)
    several = counts > 1
    squared_weights = np.add.reduceat(weights**2, starts)
    return float(np.sum((squared_weights * apart)[several] / (counts[several] - 1)))
