"""Which shifts of the logits very many events do not reject: the normal law, corrected twice."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibrant.fits.roots import brent
from calibrant.inference.shift import common_shift
from calibrant.results import Array
from calibrant.sums import dot

VARIED = 250  # variance of events, from which it differs from the exact interval by 3e-4 of its width


def normal_shift_interval(
    logits: Array, events: int, confidence: float, mass: Array | None = None
) -> tuple[float, float] | None:
    """Return the shifts at which this many events or more (or fewer) have probability (1 - confidence) / 2.

    The tail of the normal law is taken half an event inwards and corrected for skewness (Edgeworth's first
    term), which leaves an error of the order of 1 / variance. None where the variance is too small for that.
    With `mass` each logit stands for so many records.
    """
    from scipy.special import expit

    mass = np.ones(len(logits)) if mass is None else mass
    if min(events, float(mass.sum()) - events) < VARIED:  # the variance is never larger
        return None
    fitted = common_shift(logits, events, mass)
    rates = expit(logits + fitted)
    variance, rest = dot(mass * rates, 1 - rates), (1 - confidence) / 2
    if variance < VARIED:
        return None
    reach = 3 / math.sqrt(variance)  # three standard errors: a short way for the search
    ends = []
    for side in (-1.0, 1.0):
        surplus = _surplus(logits, mass, events, side, rest)
        while surplus(fitted + side * reach) > 0:
            reach *= 2
        ends.append(brent(surplus, fitted, fitted + side * reach, 1e-9))
    return ends[0], ends[1]


def _surplus(logits: Array, mass: Array, events: int, side: float, rest: float) -> Callable[[float], float]:
    """Return by how much the tail beyond the events exceeds `rest`, as a function of the shift."""
    from scipy.special import expit, ndtr

    def surplus(shift: float) -> float:
        rates = expit(logits + shift)
        spread = mass * rates * (1 - rates)
        deviation = math.sqrt(float(spread.sum()))
        skewness = dot(spread, 1 - 2 * rates) / deviation**3
        x = side * (dot(mass, rates) - events - side * 0.5) / deviation
        # the tail lies below the mean for the upper end, above it for the lower one
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return float(ndtr(-x)) - side * skewness * (x * x - 1) / 6 * density - rest

    return surplus
