"""Fisher's test with a prediction for every record: events of groups drawn given their total."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from calibrant.inference.event_count import EventCount, law_of_sum
from calibrant.inference.shift import common_shift
from calibrant.inference.shift_interval import Counts
from calibrant.results import Array


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
        rest[k] = law_of_sum(rest[k], rest[k + 1])
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
