"""Laws of the number of events S among records: logit P(y = 1) = logit p + a tilts it by exp(a S)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import expit
from calibrant.fits.roots import root
from calibrant.results import Array

MAX_SHIFT = 700.0  # a shift beyond that is infinite
Counts = npt.NDArray[np.int64]


def exact_interval(logs: Array, counts: Counts, events: int, confidence: float) -> tuple[float, float]:
    """Return the shifts at which `events` or more (or fewer) have probability (1 - confidence) / 2."""
    rest = (1 - confidence) / 2

    def surplus(shift: float, above: bool) -> float:
        return tail(logs + shift * counts, counts, events, above) - rest

    low = -np.inf if events <= counts[0] else _rising_root(lambda shift: surplus(shift, True))
    high = np.inf if events >= counts[-1] else -_rising_root(lambda shift: surplus(-shift, False))
    return low, high


def conditional_estimate(logs: Array, counts: Counts, events: int) -> float:
    """Return the shift at which the expected events are those observed; infinite at either end."""

    def surplus(shift: float) -> float:
        tilted = logs + shift * counts
        masses = np.exp(tilted - tilted.max())
        return float(masses @ counts / masses.sum()) - events

    if events <= counts[0] or events >= counts[-1]:
        return float(-np.inf if events <= counts[0] else np.inf)
    return _rising_root(surplus)


def _rising_root(function: Callable[[float], float]) -> float:
    """Return where a rising function is 0; infinite where it never is."""
    reach = 0.1
    while function(-reach) > 0 or function(reach) < 0:
        reach *= 2
        if reach > MAX_SHIFT:
            return float(-np.inf if function(0.0) > 0 else np.inf)
    return root(function, -reach, reach, 1e-9)


def tail(logs: Array, counts: Counts, events: int, above: bool) -> float:
    """Return the probability of `events` or more (or fewer); the log probabilities need not add up to 1."""
    masses = np.exp(logs - logs.max())
    beyond = masses[counts >= events] if above else masses[counts <= events]
    return min(1.0, float(beyond.sum() / masses.sum()))


MIN_SHARE = 1e-60  # shares of the largest probability that are cut off: 16 standard deviations out
MAX_CONVOLVED_RECORDS = 64  # records that are convolved one by one, for all blocks at once


def event_logs(rates: Array, counts: Counts) -> Array:
    """Return the log probabilities of these numbers of events among independent records."""
    first, masses = _convolved(rates)
    place = counts - first
    inside = (place >= 0) & (place < len(masses))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(inside, masses[np.where(inside, place, 0)], 0.0)))


def _convolved(rates: Array) -> tuple[int, Array]:
    """Return the first number of events that is not negligible, and the probabilities from there."""
    padded = np.zeros(-(-len(rates) // MAX_CONVOLVED_RECORDS) * MAX_CONVOLVED_RECORDS)
    padded[: len(rates)] = rates  # a record that is never an event changes nothing
    blocks = padded.reshape(-1, MAX_CONVOLVED_RECORDS)
    table = np.zeros((len(blocks), MAX_CONVOLVED_RECORDS + 1))
    table[:, 0] = 1.0
    for rate in blocks.T[:, :, np.newaxis]:
        table[:, 1:] = table[:, 1:] * (1 - rate) + table[:, :-1] * rate
        table[:, :1] *= 1 - rate
    laws = [_trimmed(0, masses) for masses in table]
    while len(laws) > 1:
        pairs = [law_of_sum(one, other) for one, other in zip(laws[::2], laws[1::2], strict=False)]
        laws = pairs + laws[2 * len(pairs) :]
    return laws[0]


def law_of_sum(one: tuple[int, Array], other: tuple[int, Array]) -> tuple[int, Array]:
    return _trimmed(one[0] + other[0], np.convolve(one[1], other[1]))


def _trimmed(first: int, masses: Array) -> tuple[int, Array]:
    kept = np.flatnonzero(masses > MIN_SHARE * masses.max())
    return first + int(kept[0]), masses[kept[0] : kept[-1] + 1]


def common_shift(
    logits: Array, events: float, weights: Array | float = 1.0, others: float | None = None
) -> float:
    """Return the shift at which this many events are expected; no events count as half of a mean record."""
    total = float(np.sum(np.broadcast_to(weights, logits.shape)))
    others = total - events if others is None else others
    if others < events:  # the rarer outcome is the one whose digits are all known
        return -common_shift(-logits, others, weights, events)
    wanted = events if events > 0 else 0.5 * total / len(logits)

    def surplus(shift: float) -> float:
        return float(np.sum(weights * expit(logits + shift))) - wanted

    least = -float(logits.max()) - (np.log(total) - np.log(wanted)) - 1  # the ratio may be infinite
    return root(surplus, least, 1 - float(logits.min()), 1e-12)


def odds_of(shift: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(shift))
