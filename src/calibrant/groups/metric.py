"""D_k, sigma_k and z of each subpopulation: eqs. (1)-(6), measuring-multicalibration."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from calibrant.groups.variants import Terms
from calibrant.kernels.segments import Index, Offsets, segment_curves, successive_variances
from calibrant.results import Array

MOST_WORKERS = 8
WORTH_SHARING = 1 << 17  # members, below which one core is as quick
NEARLY_ZERO = 1e-13  # of the largest step: below it a range is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some subpopulations: their rules, and their members as positions in the global order, ascending."""

    rules: Sequence[str]
    members: Index
    offsets: Offsets

    @classmethod
    def of(cls, rules: Sequence[str], lists: Sequence[Index]) -> Batch:
        """Put index lists one after another."""
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)
        members = np.concatenate([*lists, np.empty(0, dtype=np.int32)]).astype(np.int32, copy=False)
        return cls(rules, members, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Offsets:
        """How many members each subpopulation has."""
        return np.diff(self.offsets)

    def members_of(self, k: int) -> Index:
        """Return the index list of subpopulation k."""
        return self.members[self.offsets[k] : self.offsets[k + 1]]

    def share_out(self, run: Callable[[int, int], None]) -> None:
        """Call run(start, stop) for ranges of subpopulations with about as many members, on all cores."""
        workers = min(os.cpu_count() or 1, MOST_WORKERS, len(self))
        if workers < 2 or len(self.members) < WORTH_SHARING:
            run(0, len(self))
            return
        aims = np.linspace(0, len(self.members), workers + 1)[1:-1]
        cuts = [0, *np.searchsorted(self.offsets, aims).tolist(), len(self)]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, cuts[:-1], cuts[1:]))

    def select(self, kept: Sequence[int]) -> Batch:
        """Return some of the subpopulations."""
        if len(kept) == len(self):
            return self
        return Batch.of([self.rules[k] for k in kept], [self.members_of(k) for k in kept])


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What the curves of some subpopulations say, one number each.

    `kuiper` is D_k, `sigma` its null deviation (5) or (6), `z` their quotient. `first` and `last` are the
    members that bound the interval of predictions where residuals add up most (-1 where there is none) and
    `direction` is +1 where outcomes exceed predictions there, -1 where they fall short, 0 for neither.
    """

    weight: Array
    mean_prediction: Array
    mean_outcome: Array
    kuiper: Array
    sigma: Array
    z: Array
    first: Offsets
    last: Offsets
    direction: Offsets
    mark: Array  # equal for equal sets of members

    def take(self, kept: Sequence[int]) -> Curves:
        """Return some of the subpopulations."""
        return Curves(*(getattr(self, name)[list(kept)] for name in self.__slots__))


def measure_batch(batch: Batch, terms: Terms) -> Curves:
    """Measure every subpopulation of the batch in one pass over its members."""
    sums = np.zeros((len(batch), 7))
    ends = np.zeros((len(batch), 2), dtype=np.int64)

    def run(start: int, stop: int) -> None:
        offsets = batch.offsets[start : stop + 1]
        segment_curves(batch.members, offsets, terms.rows, sums[start:stop], ends[start:stop])

    batch.share_out(run)
    total, moment, variance, end, top, bottom, mark = sums.T
    if terms.successive:
        variance = np.zeros(len(batch))
        successive_variances(batch.members, batch.offsets, terms.rows, variance)
    kuiper = (top - bottom) / total
    sigma = np.sqrt(variance) / total
    low, high = ends.min(axis=1), ends.max(axis=1)
    some = high > low
    starts = batch.offsets[:-1]
    return Curves(
        weight=total,
        mean_prediction=moment / total,
        mean_outcome=(moment + end) / total,
        kuiper=kuiper,
        sigma=sigma,
        z=quotient(kuiper, sigma, terms.largest),
        first=np.where(some, batch.members[np.minimum(starts + low, len(batch.members) - 1)], -1),
        last=np.where(some, batch.members[starts + np.maximum(high - 1, 0)], -1),
        direction=np.sign(ends[:, 0] - ends[:, 1]),
        mark=mark,
    )


def quotient(kuiper: Array, sigma: Array, scale: float) -> Array:
    """D_k / sigma_k; 0 where both are nearly 0, infinite where only sigma is (an impossible outcome)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = kuiper / sigma
    return np.where(kuiper <= NEARLY_ZERO * scale, 0.0, z)
