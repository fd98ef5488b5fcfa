"""Bins of equally many records where ties are broken at random: the exact mean over all ways to do so."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.resolution import no_certificate
from calibrant.results import Array


def expected_binned_square(forecasts: Forecasts, bins: int) -> float:
    """Return the mean of the sum over bins of the squared residual (Example 3.4 of the truthfulness paper).

    Bin b holds the records ranked b n / bins up to (b + 1) n / bins. Of a level with c records it holds a
    fixed number k, drawn without replacement: a sum with mean k m and variance k (c - k) / (c - 1) s^2,
    where m and s^2 are mean and variance of the residuals of the level. Levels are independent.
    """
    if forecasts.cells is not None:
        raise no_certificate("ubse", "got ties='random', which needs the records")
    if forecasts.record_weights is not None:
        hint = 'leave out the weights, or use ties="together"'
        raise InvalidInputError(sentence("ties", '"random" needs records that weigh the same', hint=hint))
    n, counts = forecasts.n, forecasts.counts
    level, inside, where = _shared(counts, n, bins)
    mean = forecasts.residuals / counts
    spread = _spread(forecasts)
    means = np.bincount(where, inside * mean[level], bins)
    left = (counts[level] - inside) / np.maximum(counts[level] - 1, 1)
    variances = np.bincount(where, inside * left * spread[level], bins)
    return float(means @ means + variances.sum())


def _shared(
    counts: npt.NDArray[np.int64], n: int, bins: int
) -> tuple[npt.NDArray[np.intp], Array, npt.NDArray[np.intp]]:
    """Return which level shares how many records with which bin, one entry for each pair that meets."""
    ends = (np.arange(1, bins + 1) * n) // bins
    marks = np.unique(np.concatenate(([0], np.cumsum(counts), ends)))
    level = np.searchsorted(np.cumsum(counts), marks[:-1], side="right")
    return level, np.diff(marks).astype(np.float64), np.searchsorted(ends, marks[:-1], side="right")


def _spread(forecasts: Forecasts) -> Array:
    """Variance of the residuals of the records of each level, in units of the whole (each weighs 1 / n)."""
    rate = forecasts.outcomes * forecasts.n / forecasts.counts
    if forecasts.record_outcomes is None:  # 0/1: the mean square is the mean
        variance = rate * (1 - rate)
    else:
        starts = np.cumsum(forecasts.counts) - forecasts.counts
        deviations = forecasts.record_outcomes - np.repeat(rate, forecasts.counts)
        variance = np.add.reduceat(deviations**2, starts) / forecasts.counts
    return np.asarray(np.maximum(variance, 0.0) / float(forecasts.n) ** 2)
