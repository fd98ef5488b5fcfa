"""The law of the number of events among records with a probability each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.shift_interval import Counts, exact_interval
from calibrant.results import Array

OUTSIDE = 1e-60  # shares of the largest probability that are cut off: 16 standard deviations out
SMALL = 64  # records that are convolved one by one, for all blocks at once


@dataclass(frozen=True, slots=True, eq=False)
class EventCount:
    """The law of the number of events of a group: log probabilities of `first`, `first` + 1, ...

    They are those at the shift `tilt`; at the shift a they are larger by (a - tilt) times the number.
    """

    first: int
    logs: Array
    tilt: float
    records: int

    @classmethod
    def of(cls, logits: Array, tilt: float) -> EventCount:
        """Convolve the records of a group, each with the odds exp(logit + tilt)."""
        from scipy.special import expit

        first, masses = _convolved(expit(logits + tilt))
        with np.errstate(divide="ignore"):
            return cls(first, np.log(masses), tilt, len(logits))

    @property
    def counts(self) -> Counts:
        """The numbers of events that have a probability."""
        return np.arange(self.first, self.first + len(self.logs))

    def at(self, counts: Counts) -> Array:
        """Return log probabilities of these numbers of events."""
        place = counts - self.first
        inside = (place >= 0) & (place < len(self.logs))
        return np.where(inside, self.logs[np.where(inside, place, 0)], -np.inf)

    def shift_interval(self, events: int, confidence: float) -> tuple[float, float]:
        """Return the shifts that these events do not reject, either tail at (1 - confidence) / 2."""
        return exact_interval(self.logs, self.counts, events, self.tilt, confidence)


def _convolved(rates: Array) -> tuple[int, Array]:
    """Return the first number of events with a probability that counts, and the probabilities from there.

    All terms are positive, so that even tiny probabilities keep their digits.
    """
    padded = np.zeros(-(-len(rates) // SMALL) * SMALL)
    padded[: len(rates)] = rates  # a record that is never an event changes nothing
    blocks = padded.reshape(-1, SMALL)
    table = np.zeros((len(blocks), SMALL + 1))
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
    """Return the law of the sum of two independent counts."""
    return _trimmed(one[0] + other[0], np.convolve(one[1], other[1]))


def _trimmed(first: int, masses: Array) -> tuple[int, Array]:
    kept = np.flatnonzero(masses > OUTSIDE * masses.max())
    return first + int(kept[0]), masses[kept[0] : kept[-1] + 1]
