"""Which shifts of the logits so many events do not reject, exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from calibrant.fits.roots import brent
from calibrant.results import Array

FARTHEST = 700.0  # a shift beyond that is infinite
Counts = npt.NDArray[np.int64]


def exact_interval(
    logs: Array, counts: Counts, events: int, tilt: float, confidence: float
) -> tuple[float, float]:
    """Return the shifts at which this many events or more (or fewer) have probability (1 - confidence) / 2.

    The log probabilities are those at the shift `tilt`, from where the ends are looked for.
    """
    rest = (1 - confidence) / 2

    def surplus(shift: float, above: bool) -> float:
        return tail(logs + (shift - tilt) * counts, counts, events, above) - rest

    low = -np.inf if events <= counts[0] else _rising_root(lambda shift: surplus(shift, True), tilt)
    high = np.inf if events >= counts[-1] else -_rising_root(lambda shift: surplus(-shift, False), -tilt)
    return low, high


def _rising_root(function: Callable[[float], float], start: float) -> float:
    """Return where a rising function is 0, looked for around `start`; infinite where it never is."""
    reach = 0.1
    while function(start - reach) > 0 or function(start + reach) < 0:
        reach *= 2
        if reach > FARTHEST:
            return float(-np.inf if function(start) > 0 else np.inf)
    return brent(function, start - reach, start + reach, 1e-9)


def tail(logs: Array, counts: Counts, events: int, above: bool) -> float:
    """Return the probability of `events` or more (or fewer) under unnormalised log probabilities."""
    masses = np.exp(logs - logs.max())
    beyond = masses[counts >= events] if above else masses[counts <= events]
    return min(1.0, float(beyond.sum() / masses.sum()))
