"""Honest ends: how far down and up rates may go, given how many records stand at the ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.results import Array


@dataclass(frozen=True, slots=True)
class HonestRange:
    """The range that rates are held to; it always holds one half."""

    low: float
    high: float

    def holds(self, rates: Array) -> Array:
        """Return the rates held to the range."""
        return np.clip(rates, self.low, self.high)


def honest_range(rates: Array, weights: Array) -> HonestRange:
    """Return the range that non-decreasing rates are held to.

    N records without any outcome 1 have the rate (1/2) / (N + 1), by Krichevsky and Trofimov (1981). The low
    end is the greatest value that is at most this estimate for the weight of all rates below it. For 0/1
    records of equal weight it moves a lowest block of rate 0, never beyond the next block. Fractions
    of an outcome move it by as little as they move the rates: a rule for the rate 0 alone would jump.
    """
    low = np.minimum(_estimates(weights), np.append(rates, 1.0)).max()  # where two curves cross
    high = np.maximum(1.0 - _estimates(weights[::-1])[::-1], np.append(0.0, rates)).min()
    return HonestRange(float(low), float(high))


def _estimates(weights: Array) -> Array:
    """Return the estimate for the records before each level, and for all."""
    return 0.5 / (1.0 + np.append(0.0, np.cumsum(weights)))
