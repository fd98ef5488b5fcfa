"""Algorithm 1 of measuring-multicalibration: subpopulations along random root-to-leaf paths of splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from calibrant.columns import Codes, Column
from calibrant.groups.rules import Condition, Rule, among, between, conjunction
from calibrant.kernels.groups import Index

Conditions = tuple[tuple[int, bytes], ...]  # the codes that were kept, by column
CAPACITY = 2**24  # members of subsets that are kept for later paths
FEW = 2**12  # codes of a column that are kept with them
FRUITLESS = 100  # paths in a row without a new subpopulation after which there are hardly any left


@dataclass(slots=True, eq=False)
class Subset:
    """Who meets some conditions, and which codes they have in columns of few that were looked at."""

    members: Index
    codes: dict[int, Index] = field(default_factory=dict)
    offered: bool = False  # to the audit, by an earlier path


@dataclass(slots=True, eq=False)
class Visited:
    """The subsets that paths visited, up to a memory limit: with few columns, paths meet."""

    everyone: Subset
    subsets: dict[Conditions, Subset] = field(default_factory=dict)
    capacity: int = CAPACITY

    def keep(self, conditions: Conditions, subset: Subset) -> None:
        """Keep a subset if its members fit in memory."""
        if len(subset.members) <= self.capacity:
            self.capacity -= len(subset.members)
            self.subsets[conditions] = subset


class PathStep(NamedTuple):
    """A subset on a path, and who is in it in words; None where an earlier path has offered it."""

    subset: Subset
    rule: Rule | None


@dataclass(slots=True, eq=False)
class Path:
    """One walk from everyone downwards: the subset left, and the interval of each column split so far.

    A nominal column is split in an order of its categories drawn for each path; `ranks` maps its codes
    to places in that order. `conditions` say the same as the intervals, whatever the order.
    """

    columns: Sequence[Column]
    visited: Visited
    subset: Subset
    intervals: dict[int, tuple[int, int]] = field(default_factory=dict)
    ranks: dict[int, Index] = field(default_factory=dict)
    conditions: dict[int, bytes] = field(default_factory=dict)

    def split(self, j: int, rng: np.random.Generator) -> bool:
        """Keep a random side of column j; return False where the members have one value only."""
        column = self.columns[j]
        if column.nominal and j not in self.ranks:
            self.ranks[j] = rng.permutation(len(column.labels)).astype(np.int32)
        codes, of_members = self._codes(j)
        if len(codes) == 1:
            return False
        places = self.ranks[j][codes] if column.nominal else codes
        # "< median" and ">= median" of the distinct values: the lower half, without the middle one, or
        # the upper half.
        cut = int((np.sort(places) if column.nominal else places)[len(codes) // 2])
        below = bool(rng.random() < 0.5)
        low, high = self.intervals.get(j, (0, len(column.labels)))
        self.intervals[j] = (low, cut) if below else (cut, high)
        kept = codes[places < cut if below else places >= cut]
        self.conditions[j] = (kept if column.nominal else kept[[0, -1]]).tobytes()
        self._move(j, cut, below, of_members)
        return True

    def _codes(self, j: int) -> tuple[Index, Codes | None]:
        """Return the codes that the members have in column j, ascending, and each member's if looked up."""
        if j in self.subset.codes:
            return self.subset.codes[j], None
        of_members = self.columns[j].codes[self.subset.members]
        codes = _distinct(of_members, len(self.columns[j].labels))
        if len(codes) <= FEW:
            self.subset.codes[j] = codes
        return codes, of_members

    def _move(self, j: int, cut: int, below: bool, of_members: Codes | None) -> None:
        """Go to the members on one side of a cut of column j, or to where they were found before."""
        conditions = tuple(sorted(self.conditions.items()))
        known = self.visited.subsets.get(conditions)
        if known is None:
            members = self.subset.members
            place = self.columns[j].codes[members] if of_members is None else of_members
            place = self.ranks[j][place] if j in self.ranks else place
            known = Subset(members[place < cut if below else place >= cut])
            self.visited.keep(conditions, known)
        self.subset = known

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


def random_paths(
    columns: Sequence[Column], min_size: int, rng: np.random.Generator
) -> Iterator[Sequence[PathStep]]:
    """Yield path after path without end; the last step of each is the one that is too small, if any."""
    visited = Visited(Subset(np.arange(len(columns[0].codes), dtype=np.int32)))
    while True:
        yield _walk(Path(columns, visited, visited.everyone), min_size, rng)


def _walk(path: Path, min_size: int, rng: np.random.Generator) -> Sequence[PathStep]:
    """Follow one path until it is too small, or nothing is left to split.

    One departure from Algorithm 1. Where the covariate drawn has a single value left, its median is that
    value: the paper's step then keeps everyone ("at or above") or no one ("below"), so that half of these
    draws end the path. A covariate of two values is used up by its first split, so with k of them paths
    would mostly end there, far above `min_size`. Here another covariate is drawn instead. Both reach the same
    subpopulations, for the paper's paths get past such a draw half of the time; these reach the deep ones
    with fewer paths.
    """
    steps = []
    divisible = list(range(len(path.columns)))
    while divisible and len(path.subset.members) >= min_size:
        j = divisible[rng.integers(len(divisible))]
        if not path.split(j, rng):
            divisible.remove(j)  # one value only, now and further down
            continue
        steps.append(PathStep(path.subset, None if path.subset.offered else path.rule()))
    return steps
