"""Subpopulations: masks, columns and their combinations that the user names, and random paths of splits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.columns import Codes, Column, smallest_dtype
from calibrant.errors import InvalidInputError
from calibrant.groups.rules import Condition, MaskIs, Rule, among, between, conjunction, one_of
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

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Subpopulations as index lists, one after another in `members`: ascending positions of records."""

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
        """How many there are before any look at the records."""
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

    def share_out(self, run: Callable[[slice], R]) -> list[R]:
        """Return run(range) for ranges of subpopulations with about as many members, on all cores."""
        workers = 1 if len(self.members) < MIN_THREADED_MEMBERS else min(WORKERS, len(self))
        aims = np.linspace(0, len(self.members), workers + 1)[1:-1]
        cuts = [0, *np.searchsorted(self.offsets, aims).tolist(), len(self)]
        return map_threads(run, map(slice, cuts[:-1], cuts[1:]))

    def measure(self, terms: Terms) -> Curves:
        sums, ends = np.zeros((len(self), SUMS)), np.zeros((len(self), 4), dtype=np.int64)

        def run(part: slice) -> None:
            offsets = self.offsets[part.start : part.stop + 1]
            segment_curves(self.members, offsets, terms.rows, sums[part], ends[part])

        self.share_out(run)
        if terms.pooled is None:
            return curves_of(sums, ends, terms)
        successive_variances(self.members, self.offsets, terms.rows, sums[:, 3])
        added = np.append(0.0, np.cumsum(terms.pooled[self.members]))
        return curves_of(sums, ends, terms, np.diff(added[self.offsets]))


MAX_CELLS = 1 << 18  # beyond this only occupied cells are numbered


@dataclass(frozen=True, eq=False)
class Partition:
    """One subpopulation per combination of values of the columns, or of everyone without columns."""

    columns: Sequence[Column]
    cell: Codes  # of every record
    codes: npt.NDArray[np.int64]  # the value of each column in every cell
    kept: npt.NDArray[np.int64]  # the cells that are still of interest

    @classmethod
    def by(cls, columns: Sequence[Column]) -> Partition:
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
            conjunction(one_of(column, [int(code)]) for column, code in zip(self.columns, row, strict=True))
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
        if terms.pooled is not None:
            return self.lists.measure(terms)
        sums, ends = np.empty((len(self.codes), SUMS)), np.empty((len(self.codes), 4), dtype=np.int64)
        partition_curves(self.cell, terms.rows, sums, ends)
        return curves_of(sums[self.kept], ends[self.kept], terms)


Batch = Lists | Partition  # subpopulations that are measured together
Masks = dict[str, npt.NDArray[np.bool_]]

MAX_MEMBERS = 1 << 20


def as_masks(groups: Any, length: int, labels: Any = None) -> Masks | None:
    """Return boolean masks by name when that is what was given, None when the groups are columns."""
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


MAX_REMEMBERED = 2**24  # members of subsets that are remembered for later paths
MAX_REMEMBERED_CODES = 2**12  # codes of a column that are remembered with them


@dataclass(slots=True, eq=False)
class Subset:
    """Who meets some conditions, and which codes they have in columns of few that were looked at."""

    members: Index
    codes: dict[int, Index] = field(default_factory=dict)
    offered: bool = False  # to the audit, by an earlier path

    def codes_in(self, column: Column, j: int) -> tuple[Index, Codes | None]:
        """Return the distinct codes of the members, and each member's where it was looked up."""
        if j in self.codes:
            return self.codes[j], None
        found = column.codes[self.members]
        if len(column.labels) > 8 * len(found):
            ordered = np.sort(found)
            codes = ordered[np.append(True, ordered[1:] != ordered[:-1])].astype(np.int32)
        else:
            present = np.zeros(len(column.labels), dtype=bool)
            present[found] = True
            codes = np.flatnonzero(present).astype(np.int32)
        if len(codes) <= MAX_REMEMBERED_CODES:
            self.codes[j] = codes
        return codes, found


PathStep = tuple[Subset, Rule | None]  # who is in it in words; None where an earlier path has offered it


def random_paths(
    columns: Sequence[Column], min_size: int, rng: np.random.Generator
) -> Iterator[list[PathStep]]:
    """Yield paths (Algorithm 1) without end, each until it is too small or nothing is left to split."""
    everyone = Subset(np.arange(len(columns[0].codes), dtype=np.int32))
    known: dict[tuple[tuple[int, bytes], ...], Subset] = {}  # with few columns, paths meet
    capacity = MAX_REMEMBERED
    while True:
        subset, steps, divisible = everyone, [], list(range(len(columns)))
        intervals: dict[int, tuple[int, int]] = {}  # of codes or ranks, by column
        conditions: dict[int, bytes] = {}  # the same whatever the ranks: the codes that are left
        ranks: dict[int, Index] = {}  # an order of the categories, drawn for each path
        while divisible and len(subset.members) >= min_size:
            j = divisible[rng.integers(len(divisible))]
            column = columns[j]
            if column.nominal and j not in ranks:
                ranks[j] = rng.permutation(len(column.labels)).astype(np.int32)
            codes, place = subset.codes_in(column, j)
            if len(codes) == 1:
                # Algorithm 1 ends half of the paths here, far above min_size if covariates have few values;
                # going on reaches the same subpopulations, the deep ones with fewer paths
                divisible.remove(j)  # one value only, now and further down
                continue
            places = ranks[j][codes] if column.nominal else codes
            # the lower half of the distinct values, without the middle one, or the upper half
            cut = int((np.sort(places) if column.nominal else places)[len(codes) // 2])
            below = bool(rng.random() < 0.5)
            low, high = intervals.get(j, (0, len(column.labels)))
            intervals[j] = (low, cut) if below else (cut, high)
            left = codes[places < cut if below else places >= cut]
            conditions[j] = (left if column.nominal else left[[0, -1]]).tobytes()
            key = tuple(sorted(conditions.items()))
            found = known.get(key)
            if found is None:
                place = column.codes[subset.members] if place is None else place
                place = ranks[j][place] if column.nominal else place
                found = Subset(subset.members[place < cut if below else place >= cut])
                if len(found.members) <= capacity:
                    capacity -= len(found.members)
                    known[key] = found
            subset = found
            steps.append((subset, None if subset.offered else _rule_of_path(columns, intervals, ranks)))
        yield steps


def _rule_of_path(
    columns: Sequence[Column], intervals: Mapping[int, tuple[int, int]], ranks: Mapping[int, Index]
) -> Rule:
    conditions: list[Condition | None] = []
    for j, (low, high) in sorted(intervals.items()):
        if columns[j].nominal:
            inside = np.flatnonzero((ranks[j] >= low) & (ranks[j] < high))
            conditions.append(among(columns[j], inside.tolist()))
        else:
            conditions.append(between(columns[j], low, high))
    return conjunction(conditions)
