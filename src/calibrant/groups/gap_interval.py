"""The interval of a group's difference, happened minus predicted: one method for every verb and page.

If the odds of all records of a group are off by one factor, its number of events has a known law. The factors
that the events do not reject make an interval of the factor, and so of the rate: it holds in groups of any
size and never leaves what rates can reach.
"""

from __future__ import annotations

import numpy as np

from calibrant.groups.group_parts import GroupPart
from calibrant.inference.event_count import EventCount
from calibrant.inference.fitted_shift import approximate_shift
from calibrant.inference.large_counts import MANY, normal_shift_interval
from calibrant.inference.shift import common_shift
from calibrant.sums import dot


def law_of(part: GroupPart) -> EventCount:
    """Return the law of the group's events, tilted to what was seen, so that it is precise there."""
    return EventCount.of(part.logits, common_shift(part.logits, part.events))


def shift_interval(part: GroupPart, exact: bool, confidence: float) -> tuple[float, float]:
    """Return the shifts of all logits that the group's events do not reject."""
    if len(part.logits) == 0:
        return -np.inf, np.inf
    if exact and min(part.events, len(part.logits) - part.events) >= MANY:
        return normal_shift_interval(part.logits, part.events, confidence)
    if exact:
        return law_of(part).shift_interval(part.events, confidence)
    from scipy.special import ndtri

    fitted = approximate_shift(part.logits, part.known, part.mass)
    half = float(ndtri((1 + confidence) / 2)) * fitted.error
    never, always = not part.known.any(), bool(np.all(part.known == 1))
    return -np.inf if never else fitted.value - half, np.inf if always else fitted.value + half


def gap_interval(part: GroupPart, shifts: tuple[float, float]) -> tuple[float, float]:
    """Return what an interval of shifts makes of the difference between outcome and prediction."""
    predicted = part.forecasts.mean_prediction
    gap = part.forecasts.base_rate - predicted
    low, high = (_rate(part, shift) - predicted for shift in shifts)
    return min(gap, low), max(gap, high)


def _rate(part: GroupPart, shift: float) -> float:
    """Return the rate of the outcome if the odds of all records are off by this shift."""
    from scipy.special import expit

    return float((dot(part.mass, expit(part.logits + shift)) + part.sure) / part.weight)
