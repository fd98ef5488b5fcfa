"""The interval of a group's difference, happened minus predicted: one method for every verb and page.

If the odds of all records of a group are off by one factor, its number of events has a known law. The factors
that the events do not reject make an interval of the factor, and so of the rate: it holds in groups of any
size and never leaves what rates can reach.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from calibrant.groups.group_parts import Certain, GroupPart
from calibrant.groups.wilson import wilson_end
from calibrant.inference.event_count import EventCount
from calibrant.inference.fitted_shift import approximate_shift
from calibrant.inference.large_counts import normal_shift_interval
from calibrant.inference.shift import common_shift
from calibrant.results import Array
from calibrant.sums import dot

FAR = 10.0  # shifts from the tilt of a law, which is cut off at exp(-138)


def law_of(part: GroupPart) -> EventCount:
    """Return the law of the group's events, tilted to what was seen, so that it is precise there."""
    return EventCount.of(part.logits, common_shift(part.logits, part.events))


def shift_interval(part: GroupPart, exact: bool, confidence: float) -> tuple[float, float]:
    """Return the shifts of all logits that the group's events do not reject."""
    if len(part.logits) == 0:
        return -np.inf, np.inf
    if exact:
        ends = normal_shift_interval(part.logits, part.events, confidence)
        return _exact_interval(part, confidence) if ends is None else ends
    from scipy.special import ndtri

    fitted = approximate_shift(part.logits, part.known, part.mass)
    half = float(ndtri((1 + confidence) / 2)) * fitted.error
    never, always = not part.known.any(), bool(np.all(part.known == 1))
    return -np.inf if never else fitted.value - half, np.inf if always else fitted.value + half


def _exact_interval(part: GroupPart, confidence: float) -> tuple[float, float]:
    """Return the exact interval of the shift.

    A law lacks what is all but impossible at its own tilt. Ends far from there, where predictions are next
    to 0 and 1 and were right, are looked for once more, by a law that is tilted to them.
    """
    law = law_of(part)
    ends = list(law.shift_interval(part.events, confidence))
    for side, last, beyond in ((0, 0, part.events - 1), (1, len(part.logits), part.events + 1)):
        if part.events != last and abs(ends[side] - law.tilt) > FAR:
            near = ends[side] if math.isfinite(ends[side]) else common_shift(part.logits, beyond)
            ends[side] = EventCount.of(part.logits, near).shift_interval(part.events, confidence)[side]
    return ends[0], ends[1]


class Shifted(Protocol):
    """A group: predictions other than 0 and 1, their outcomes and weights, and the rows of 0 and 1."""

    @property
    def logits(self) -> Array: ...
    @property
    def known(self) -> Array: ...
    @property
    def mass(self) -> Array: ...
    @property
    def never(self) -> Certain: ...
    @property
    def always(self) -> Certain: ...
    @property
    def weight(self) -> float: ...
    @property
    def gap(self) -> float: ...


def gap_interval(part: Shifted, shifts: tuple[float, float], confidence: float) -> tuple[float, float]:
    """Return what an interval of shifts makes of the difference between outcome and prediction.

    No shift moves a prediction of 0 or 1. The rates of outcomes among them have Wilson's intervals, be they
    right or wrong: a few records do not show that something never happens. The deviations of the parts are
    added as squares (Zou & Donner 2008, Construction of confidence limits about effect measures).
    """
    from scipy.special import expit, ndtri

    low, high = (dot(part.mass, expit(part.logits + shift)) for shift in shifts)
    events, squared = dot(part.mass, part.known), float(ndtri((1 + confidence) / 2)) ** 2
    reach = [(events - low, high - events), *(_reach(one, squared) for one in (part.never, part.always))]
    down, up = (
        math.hypot(*(max(one, 0.0) for one in side)) / part.weight for side in zip(*reach, strict=True)
    )
    return part.gap - down, part.gap + up


def _reach(certain: Certain, squared: float) -> tuple[float, float]:
    """Return how many events fewer and more these rows may stand for, by Wilson's interval of their rate."""
    if not certain.weight:
        return 0.0, 0.0
    rate = certain.events / certain.weight
    low, high = (wilson_end(rate, squared / certain.effective, side) for side in (-1.0, 1.0))
    return certain.weight * (rate - low), certain.weight * (high - rate)
