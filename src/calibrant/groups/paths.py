"""Algorithm 1 of measuring-multicalibration: subpopulations along random root-to-leaf paths of splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrant.groups.batches import Lists
from calibrant.groups.column_codes import Column
from calibrant.groups.conditions import Condition
from calibrant.groups.rules import Rule, among, between, conjunction
from calibrant.kernels.segments import Index

FRUITLESS = 100  # paths in a row without a new subpopulation after which there are hardly any left


@dataclass(slots=True)
class Path:
    """One walk from everyone downwards: the members left, and the interval of each column split so far.

    A nominal column is split in an order of its categories drawn anew for each path; `ranks` maps its codes
    to places in that order.
    """

    columns: Sequence[Column]
    members: Index
    intervals: dict[int, tuple[int, int]] = field(default_factory=dict)
    ranks: dict[int, Index] = field(default_factory=dict)

    def split(self, j: int, rng: np.random.Generator) -> bool:
        """Keep a random side of column j; return False where the members have one value only."""
        column = self.columns[j]
        if column.nominal and j not in self.ranks:
            self.ranks[j] = rng.permutation(len(column.labels)).astype(np.int32)
        place = column.codes[self.members]
        if column.nominal:
            place = self.ranks[j][place]
        distinct = _distinct(place, len(column.labels))
        if len(distinct) == 1:
            return False
        # "< median" and ">= median" of the distinct values: the lower half, without the middle one, or
        # the upper half.
        cut = int(distinct[len(distinct) // 2])
        low, high = self.intervals.get(j, (0, len(column.labels)))
        if rng.random() < 0.5:
            self.members, self.intervals[j] = self.members[place < cut], (low, cut)
        else:
            self.members, self.intervals[j] = self.members[place >= cut], (cut, high)
        return True

    def rule(self) -> Rule:
        """Say in words who is left."""
        return conjunction(self._condition(j) for j in sorted(self.intervals))

    def _condition(self, j: int) -> Condition | None:
        low, high = self.intervals[j]
        if not self.columns[j].nominal:
            return between(self.columns[j], low, high)
        places = self.ranks[j]
        return among(self.columns[j], np.flatnonzero((places >= low) & (places < high)).tolist())


def _distinct(place: Index, size: int) -> Index:
    """Return the sorted distinct places, by a table when that is cheaper than a sort."""
    if size > 8 * len(place):
        ordered = np.sort(place)
        fresh = np.append(True, ordered[1:] != ordered[:-1])
        return np.asarray(ordered[fresh], dtype=np.int32)
    present = np.zeros(size, dtype=bool)
    present[place] = True
    return np.flatnonzero(present).astype(np.int32)


def random_paths(columns: Sequence[Column], min_size: int, rng: np.random.Generator) -> Iterator[Lists]:
    """Yield path after path without end; the last entry of each is the one that is too small, if any."""
    n = len(columns[0].codes)
    everyone = np.arange(n, dtype=np.int32)
    while True:
        yield _walk(Path(columns, everyone), min_size, rng)


def _walk(path: Path, min_size: int, rng: np.random.Generator) -> Lists:
    """Follow one path until it is too small, or nothing is left to split.

    One departure from Algorithm 1. Where the covariate drawn has a single value left, its median is that
    value: the paper's step then keeps everyone ("at or above") or nobody ("below"), so that half of these
    draws end the path. A covariate of two values is used up by its first split, so with k of them paths
    would mostly end there, far above `min_size`. Here another covariate is drawn instead. Both reach the same
    subpopulations, for the paper's paths get past such a draw half of the time; these reach the deep ones
    with fewer paths.
    """
    rules, lists = [], []
    divisible = list(range(len(path.columns)))
    while divisible and len(path.members) >= min_size:
        j = divisible[rng.integers(len(divisible))]
        if not path.split(j, rng):
            divisible.remove(j)  # one value only, now and further down
            continue
        rules.append(path.rule())
        lists.append(path.members)
    return Lists.of(rules, lists)
