"""Shifts of logits: by which factor the odds of the outcome differ from what was predicted, exactly.

If logit P(y = 1) = logit p + a, the number of events S of a group has a Poisson-binomial law that is tilted
by exp(a S). Given the events of several groups together, the shift that they share drops out: what is left
is Fisher's exact test with a prediction of its own for every record. Nothing is approximated but what lies
further out than 16 standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.fits.roots import brent
from calibrant.inference.event_count import OUTSIDE, EventCount
from calibrant.inference.shift_interval import exact_interval, tail
from calibrant.results import Array


def common_shift(
    logits: Array, events: float, weights: Array | float = 1.0, others: float | None = None
) -> float:
    """Return the shift at which as many events are expected; none at all count as half an event.

    With weights `events` and `others` are the weights of the two outcomes, and the half is of their mean.
    """
    from scipy.special import expit

    total = float(np.sum(np.broadcast_to(weights, logits.shape)))
    others = total - events if others is None else others
    if others < events:  # the rarer outcome is the one whose digits are all known
        return -common_shift(-logits, others, weights, events)
    wanted = events if events > 0 else 0.5 * total / len(logits)

    def surplus(shift: float) -> float:
        return float(np.sum(weights * expit(logits + shift))) - wanted

    least = -float(logits.max()) - (np.log(total) - np.log(wanted)) - 1  # the ratio may be infinite
    return brent(surplus, least, 1 - float(logits.min()), 1e-12)


def odds_of(shift: float) -> float:
    """Return the factor of the odds that a shift stands for; infinite beyond what a number can hold."""
    with np.errstate(over="ignore"):
        return float(np.exp(shift))


@dataclass(frozen=True, slots=True)
class ShiftPair:
    """The shift of one group minus that of another, with interval and two-sided p-value, which agree."""

    shift: float
    lower: float
    upper: float
    pvalue: float


def exact_pair(
    one: EventCount,
    other: EventCount,
    events: tuple[int, int],
    fitted: tuple[float, float],
    confidence: float,
) -> ShiftPair:
    """Compare two groups given the events of both together: Fisher's test with predictions."""
    total = sum(events)
    counts = one.counts
    logs = one.at(counts) + other.at(total - counts)
    known = np.isfinite(logs)
    logs, counts = logs[known], counts[known]
    tilt = one.tilt - other.tilt
    at_null = logs - tilt * counts
    tails = [tail(at_null, counts, events[0], above) for above in (True, False)]
    low, high = exact_interval(logs, counts, events[0], tilt, confidence)
    return ShiftPair(fitted[0] - fitted[1], low, high, max(OUTSIDE, min(1.0, 2 * min(tails))))
