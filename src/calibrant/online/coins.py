"""Coins from a seed and a counter: a saved forecaster needs two whole numbers to go on as it would have."""

from __future__ import annotations

import numpy as np

from calibrant.results import Array

_MASK = 2**64 - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_TO_UNIT = 1.0 / 2**53


def coin(seed: int, counter: int) -> float:
    """Return the uniform number in [0, 1) of this seed and counter: splitmix64, twice.

    >>> coin(0, 0)
    0.6524484863740322
    """
    return (_mixed(_mixed(seed & _MASK) ^ (counter & _MASK)) >> 11) * _TO_UNIT


def _mixed(x: int) -> int:
    """Return one output of splitmix64 (Steele, Lea and Flood 2014)."""
    z = (x + _STEP) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def coins(seed: int, first: int, count: int) -> Array:
    """Return the coins of `count` counters in a row, the same as one by one."""
    z = np.uint64(_mixed(seed & _MASK)) ^ np.arange(first, first + count, dtype=np.uint64)
    z = z + np.uint64(_STEP)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    uniform: Array = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * _TO_UNIT
    return uniform
