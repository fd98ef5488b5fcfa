"""Subpopulations: masks, columns and their combinations that the user names, and random paths of splits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.columns import Codes, Column, smallest_dtype
from calibrant.errors import InvalidInputError
from calibrant.groups.rules import Condition, MaskIs, Rule, among, between, conjunction, equality
from calibrant.groups.statistics import MIN_THREADED_MEMBERS, SUMS, Curves, Terms, curves_of
from calibrant.inputs import check_aligned, check_same_length, to_array
from calibrant.kernels.groups import (
    Index,
    Offsets,
    counting_sort,
    partition_curves,
    segment_curves,
    successive_variances,
)
from calibrant.parallel import WORKERS, map_threads


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Subpopulations as index lists, one after another in `members`: ascending positions of records.

    `offered` is how many there are before any look at the records.
    """

    rules: Sequence[Rule]
    members: Index
    offsets: Offsets

    @classmethod
    def of(cls, rules: Sequence[Rule], lists: Sequence[Index]) -> Lists:
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)
        members = np.concatenate([*lists, np.empty(0, dtype=np.int32)]).astype(np.int32, copy=False)
        return cls(rules, members, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def offered(self) -> int:
        return len(self)

    def members_of(self, k: int) -> Index:
        return self.members[self.offsets[k] : self.offsets[k + 1]]

    def select(self, kept: Sequence[int]) -> Lists:
        if len(kept) == len(self):
            return self
        return Lists.of([self.rules[k] for k in kept], [self.members_of(k) for k in kept])

    @property
    def lists(self) -> Lists:
        return self

    def share_out(self, run: Callable[[slice], None]) -> None:
        """Call run(range) for ranges of subpopulations with about as many members, on all cores."""
        workers = 1 if len(self.members) < MIN_THREADED_MEMBERS else min(WORKERS, len(self))
        aims = np.linspace(0, len(self.members), workers + 1)[1:-1]
        cuts = [0, *np.searchsorted(self.offsets, aims).tolist(), len(self)]
        map_threads(run, map(slice, cuts[:-1], cuts[1:]))

    def measure(self, terms: Terms) -> Curves:
        sums, ends = np.zeros((len(self), SUMS)), np.zeros((len(self), 4), dtype=np.int64)

        def run(part: slice) -> None:
            offsets = self.offsets[part.start : part.stop + 1]
            segment_curves(self.members, offsets, terms.rows, sums[part], ends[part])

        self.share_out(run)
        if terms.successive:
            sums[:, 3] = 0.0
            successive_variances(self.members, self.offsets, terms.rows, sums[:, 3])
        if terms.pooled is None:
            return curves_of(sums, ends, terms)
        added = np.append(0.0, np.cumsum(terms.pooled[self.members]))
        return curves_of(sums, ends, terms, np.diff(added[self.offsets]))


MAX_CELLS = 1 << 18  # beyond this only occupied cells are numbered


@dataclass(frozen=True, eq=False)
class Partition:
    """One subpopulation per combination of values of the columns; `cell` numbers that of every record.

    No columns make one of everyone. `codes` holds the value of each column in every cell, `kept` the cells
    that are still of interest.
    """

    columns: Sequence[Column]
    cell: Codes
    codes: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64]

    @classmethod
    def by(cls, columns: Sequence[Column]) -> Partition:
        """Divide everyone by the values of the columns."""
        cell = columns[0].codes
        codes = np.arange(len(columns[0].labels))[:, None]
        for column in columns[1:]:
            width = len(column.labels)
            cells = len(codes) * width
            kind = smallest_dtype(cells + 1)  # the width itself must fit, and may be the number of cells
            joint = cell.astype(kind) * kind.type(width) + column.codes
            if cells > MAX_CELLS:
                occupied, numbered = np.unique(joint, return_inverse=True)
                cell = numbered.astype(smallest_dtype(len(occupied)))
            else:
                cell, occupied = joint, np.arange(cells)
            codes = np.column_stack((codes[occupied // width], occupied % width))
        return cls(columns, cell, codes, np.arange(len(codes)))

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def offered(self) -> int:
        return math.prod(len(column.labels) for column in self.columns)

    @cached_property
    def rules(self) -> Sequence[Rule]:
        if not self.columns:
            return [Rule()]
        return [
            conjunction(equality(column, int(code)) for column, code in zip(self.columns, row, strict=True))
            for row in self.codes[self.kept]
        ]

    def members_of(self, k: int) -> Index:
        return np.flatnonzero(self.cell == self.kept[k]).astype(np.int32)

    def select(self, kept: Sequence[int]) -> Partition:
        return self if len(kept) == len(self) else replace(self, kept=self.kept[list(kept)])

    @cached_property
    def lists(self) -> Lists:
        counts = np.bincount(self.cell, minlength=len(self.codes))
        ends = np.cumsum(counts)
        members = np.empty(len(self.cell), dtype=np.int32)
        counting_sort(self.cell, (ends - counts).astype(np.int64), members)
        everything = Lists([Rule()] * len(counts), members, np.concatenate(([0], ends)).astype(np.int64))
        return replace(everything.select(self.kept.tolist()), rules=self.rules)

    def measure(self, terms: Terms) -> Curves:
        if terms.successive:
            return self.lists.measure(terms)
        sums, ends = np.empty((len(self.codes), SUMS)), np.empty((len(self.codes), 4), dtype=np.int64)
        partition_curves(self.cell, terms.rows, sums, ends)
        return curves_of(sums[self.kept], ends[self.kept], terms)


Batch = Lists | Partition  # subpopulations that are measured together
Masks = dict[str, npt.NDArray[np.bool_]]

MAX_MEMBERS = 1 << 20


def as_masks(groups: Any, length: int, labels: Any = None) -> Masks | None:
    """Return boolean masks by name when that is what was given, None when the groups are columns.

    They have `length` rows; `labels` is the index of the predictions that they belong to.
    """
    if not isinstance(groups, Mapping):
        return None
    arrays = {str(name): to_array(mask, f"mask {name!r}") for name, mask in groups.items()}
    if not arrays or any(array.dtype.kind != "b" for array in arrays.values()):
        return None
    for name, array in arrays.items():
        if array.ndim != 1:
            got = f"got shape {array.shape}"
            raise InvalidInputError(f"mask {name!r}", "must be one-dimensional", got)
        check_same_length(array, range(length), (f"mask {name!r}", "y_prob"))
    for name, mask in groups.items():
        check_aligned(mask, labels, (f"mask {name!r}", "y_prob"))
    return arrays


def everyone(n: int) -> Partition:
    """Return the full population, subpopulation 0 of the paper."""
    return Partition([], np.zeros(n, dtype=np.uint8), np.empty((1, 0), dtype=np.int64), np.zeros(1, np.int64))


def masked(masks: Masks, rows: npt.NDArray[np.int64]) -> Iterator[Batch]:
    """Yield one subpopulation per mask, about a million members at a time."""
    names: list[Rule] = []
    lists: list[Index] = []
    for name, mask in masks.items():
        names.append(Rule([MaskIs(name)]))
        lists.append(np.flatnonzero(mask[rows]).astype(np.int32))
        if sum(map(len, lists)) >= MAX_MEMBERS:
            yield Lists.of(names, lists)
            names, lists = [], []
    yield Lists.of(names, lists)


def offered_combinations(columns: Sequence[Column], depth: int) -> int:
    """Return how many combinations of values there are, including empty ones."""
    depth = min(depth, len(columns))
    sums = [1] + [0] * depth  # elementary symmetric sums of the numbers of values
    for column in columns:
        for size in range(depth, 0, -1):
            sums[size] += sums[size - 1] * len(column.labels)
    return sum(sums[1:])


def combinations(columns: Sequence[Column], depth: int) -> Iterator[Partition]:
    """Yield every combination of values of 1, 2, ... `depth` columns, few columns first."""
    for size in range(1, min(depth, len(columns)) + 1):
        for chosen in itertools.combinations(columns, size):
            yield Partition.by(chosen)


Conditions = tuple[tuple[int, bytes], ...]  # the codes that were kept, by column
CAPACITY = 2**24  # members of subsets that are kept for later paths
MAX_KEPT_CODES = 2**12  # codes of a column that are kept with them


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
        if len(subset.members) <= self.capacity:
            self.capacity -= len(subset.members)
            self.subsets[conditions] = subset


PathStep = tuple[Subset, Rule | None]  # who is in it in words; None where an earlier path has offered it


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
        if len(codes) <= MAX_KEPT_CODES:
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
        conditions: list[Condition | None] = []
        for j in sorted(self.intervals):
            (low, high), column = self.intervals[j], self.columns[j]
            if column.nominal:
                places = self.ranks[j]
                conditions.append(among(column, np.flatnonzero((places >= low) & (places < high)).tolist()))
            else:
                conditions.append(between(column, low, high))
        return conjunction(conditions)


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
) -> Iterator[list[PathStep]]:
    """Yield path after path without end, each until it is too small or nothing is left to split.

    One departure from Algorithm 1. Where the covariate drawn has a single value left, its median is that
    value: the paper's step then keeps everyone ("at or above") or no one ("below"), so that half of these
    draws end the path. A covariate of two values is used up by its first split, so with k of them paths
    would mostly end there, far above `min_size`. Here another covariate is drawn instead. Both reach the same
    subpopulations, for the paper's paths get past such a draw half of the time; these reach the deep ones
    with fewer paths.
    """
    visited = Visited(Subset(np.arange(len(columns[0].codes), dtype=np.int32)))
    while True:
        path, steps = Path(columns, visited, visited.everyone), []
        divisible = list(range(len(columns)))
        while divisible and len(path.subset.members) >= min_size:
            j = divisible[rng.integers(len(divisible))]
            if path.split(j, rng):
                steps.append((path.subset, None if path.subset.offered else path.rule()))
            else:
                divisible.remove(j)  # one value only, now and further down
        yield steps
