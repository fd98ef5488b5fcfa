"""Shifts of logits: by which factor the odds of the outcome differ from what was predicted, exactly.

If logit P(y = 1) = logit p + a, the number of events S of a group has a Poisson-binomial law that is tilted
by exp(a S). Given the events of several groups together, the shift that they share drops out: what is left
is Fisher's exact test with a prediction of its own for every record. Nothing is approximated but what lies
further out than 16 standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.inference.event_count import OUTSIDE, EventCount, joined
from calibrant.inference.shift_interval import FARTHEST, Counts, exact_interval, tail
from calibrant.results import Array

ROUNDING = 1e-9  # a shift is not known better, even where outcomes are fractions that say all
SMALLEST = 1e-200  # in place of a variance of 0, which predictions next to 0 have


def common_shift(
    logits: Array, events: float, weights: Array | float = 1.0, others: float | None = None
) -> float:
    """Return the shift at which as many events are expected; none at all count as half an event.

    With weights `events` and `others` are the weights of the two outcomes, and the half is of their mean.
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    total = float(np.sum(np.broadcast_to(weights, logits.shape)))
    others = total - events if others is None else others
    if others < events:  # the rarer outcome is the one whose digits are all known
        return -common_shift(-logits, others, weights, events)
    wanted = events if events > 0 else 0.5 * total / len(logits)

    def surplus(shift: float) -> float:
        return float(np.sum(weights * expit(logits + shift))) - wanted

    least = -float(logits.max()) - np.log(total / wanted) - 1
    return float(brentq(surplus, least, 1 - float(logits.min()), xtol=1e-12))


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


def simulated_pvalues(
    logits: Sequence[Array],
    events: Counts,
    statistics: Sequence[Callable[[Array], Array]],
    *,
    draws: int,
    seed: int,
) -> list[float]:
    """Return p-values of statistics of the groups' surplus events, if all groups share one shift.

    Surpluses are events minus what the common shift expects, over all groups 0. The draws are exact: events
    of the groups given those of all together.
    """
    from scipy.special import expit

    total = int(events.sum())
    every = np.concatenate(logits)
    if total in (0, len(every)):  # nothing can be said
        return [1.0 for _ in statistics]
    shift = common_shift(every, total)
    expected = np.array([float(expit(group + shift).sum()) for group in logits])
    laws = [EventCount.of(group, shift) for group in logits]
    drawn = _given_total(laws, total, draws, np.random.default_rng(seed))
    collected = []
    for statistic in statistics:
        observed = float(statistic((events - expected)[np.newaxis, :])[0])
        reached = statistic(drawn - expected) >= observed - 1e-9 * (1 + abs(observed))
        collected.append((1 + int(np.count_nonzero(reached))) / (draws + 1))
    return collected


def _given_total(laws: list[EventCount], total: int, draws: int, generator: np.random.Generator) -> Array:
    """Draw the events of every group (columns), given how many there are in all."""
    rest = [(law.first, np.exp(law.logs)) for law in laws]
    for k in range(len(laws) - 2, -1, -1):  # the law of the groups from k on
        rest[k] = joined(rest[k], rest[k + 1])
    left = np.full(draws, total)
    drawn = np.empty((draws, len(laws)))
    for k, law in enumerate(laws[:-1]):
        first, masses = rest[k + 1]
        drawn[:, k] = _one_group(law, first, masses, left, generator.random(draws))
        left = left - drawn[:, k].astype(np.int64)
    drawn[:, -1] = left
    return drawn


def _one_group(
    law: EventCount, first: int, others: Array, left: Counts, uniform: Array
) -> npt.NDArray[np.int64]:
    """Draw the events of one group, given those of it and of the groups behind it together."""
    own, counts = np.exp(law.logs), law.counts
    kept = np.flatnonzero(own > 1e-25 * own.max())
    own, counts = own[kept], counts[kept]
    out = np.empty(len(left), dtype=np.int64)
    for value in np.unique(left):
        which = np.flatnonzero(left == value)
        place = value - counts - first
        inside = (place >= 0) & (place < len(others))
        masses = np.where(inside, own * others[np.where(inside, place, 0)], 0.0)
        cumulative = np.cumsum(masses)
        out[which] = counts[np.searchsorted(cumulative, uniform[which] * cumulative[-1], side="right")]
    return out


@dataclass(frozen=True, slots=True)
class Shift:
    """A fitted shift and its standard error, for weights or fractional outcomes (a sandwich)."""

    value: float
    error: float


def approximate_shift(logits: Array, outcomes: Array, weights: Array) -> Shift:
    """Fit the shift of a group; the error is the larger of what records show and what the model implies."""
    from scipy.special import expit

    weights = weights / weights.max()
    value = common_shift(logits, float(weights @ outcomes), weights, float(weights @ (1 - outcomes)))
    rates = expit(logits + value)
    spread = rates * (1 - rates)
    shown = float(weights**2 @ (outcomes - rates) ** 2)
    implied = float(weights**2 @ spread)
    binary = bool(np.all((outcomes == 0) | (outcomes == 1)))
    error = np.sqrt(max(shown, implied if binary else 0.0)) / max(float(weights @ spread), SMALLEST)
    return Shift(value, min(max(float(error), ROUNDING), FARTHEST))
