"""Quantiles of simulated values, as bounds on the next one."""

from __future__ import annotations

import math

import numpy as np

from calibrant.results import Array


def upper_quantile(values: Array, share: float) -> float:
    """Return the value that a further draw exceeds with a chance of 1 - `share` at most.

    The k-th smallest of m is exceeded by one more with chance 1 - k / (m + 1): k = share (m + 1), rounded up.
    Sample quantiles between neighbours are too small: of 99 draws, that for 95 % is exceeded by 5.9 %.

    >>> upper_quantile(np.arange(1.0, 100.0), 0.95)
    95.0
    """
    rank = math.ceil(share * (len(values) + 1) - 1e-9)
    return _ranked(values, rank)


def lower_quantile(values: Array, share: float) -> float:
    """Return the value that a further draw falls below with a chance of `share` at most.

    >>> lower_quantile(np.arange(1.0, 100.0), 0.05)
    5.0
    """
    return _ranked(values, math.floor(share * (len(values) + 1) + 1e-9))


def _ranked(values: Array, rank: int) -> float:
    """Return the value of this rank, from 1; the first or the last where there are too few draws for it."""
    place = min(max(rank, 1), len(values)) - 1
    return float(np.partition(values, place)[place])
