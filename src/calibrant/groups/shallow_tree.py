"""A few groups in words that explain a number given to every record: a small regression tree on codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from calibrant.groups.column_codes import Column
from calibrant.groups.conditions import Condition
from calibrant.groups.rules import Rule, among, between, conjunction
from calibrant.kernels.segments import Index
from calibrant.results import Array

Codes = npt.NDArray[np.int64]

PROBES = 7  # cuts of a column that are tried for the sake of what follows


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A group: its members, and for each column that is restricted the codes that belong to it."""

    members: Index
    codes: Mapping[int, Codes] = field(default_factory=dict)
    depth: int = 0

    def rule(self, columns: Sequence[Column]) -> Rule:
        """Say in words who is meant."""
        return conjunction(_condition(columns[j], self.codes[j]) for j in sorted(self.codes))


def _condition(column: Column, codes: Codes) -> Condition | None:
    if column.nominal:
        return among(column, codes.tolist())
    return between(column, int(codes.min()), int(codes.max()) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    gain: float
    column: int
    left: Codes  # codes
    right: Codes


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """What the splits look at: the columns that may be used, the target and the weights."""

    columns: Sequence[Column]
    usable: Sequence[int]
    target: Array
    weight: Array
    smallest: int
    depth: int

    def best(self, leaf: Leaf) -> _Split | None:
        """Return the split that helps most, with the best splits of its two sides counted in.

        Without that look ahead an interaction of two columns, whose first split gains nothing, is missed.
        """
        left_over = self.depth - leaf.depth
        if left_over == 0:
            return None
        y, w = self.target[leaf.members], self.weight[leaf.members]
        floor = 1e-9 * float(w @ (y - (w @ y) / w.sum()) ** 2)
        splits = [split for j in self.usable for split in self._candidates(j, leaf.members)]
        if left_over > 1:
            splits = [replace(split, gain=split.gain + self._ahead(split, leaf.members)) for split in splits]
        best = max(splits, key=lambda split: split.gain, default=None)
        return best if best is not None and best.gain > floor else None

    def _candidates(self, j: int, members: Index) -> Iterator[_Split]:
        """Yield the best split of a column, and a few others in case they prepare better ones."""
        column, codes = self.columns[j], self.columns[j].codes[members]
        best = self._cut(j, members)
        if best is None:
            return
        yield best
        if column.nominal:
            count = np.bincount(codes)
            probes = [np.array([c]) for c in np.argsort(-count, kind="stable")[:PROBES] if count[c]]
        else:
            places = np.linspace(0, len(codes) - 1, PROBES + 2).astype(np.int64)[1:-1]
            probes = [np.arange(cut) for cut in np.unique(np.sort(codes)[places])]
        present = np.flatnonzero(np.bincount(codes))
        for probe in probes:
            chosen = _table(probe, column)
            inside = chosen[codes]
            if self.smallest <= np.count_nonzero(inside) <= len(codes) - self.smallest:
                sides = present[chosen[present]], present[~chosen[present]]
                yield _Split(self._gain(members, inside), j, *sides)

    def _gain(self, members: Index, inside: npt.NDArray[np.bool_]) -> float:
        y, w = self.target[members], self.weight[members]
        parts = [(w[side], y[side]) for side in (inside, ~inside)]
        return float(sum((a @ b) ** 2 / a.sum() for a, b in parts) - (w @ y) ** 2 / w.sum())

    def _ahead(self, split: _Split, members: Index) -> float:
        """Return what the best further split of both sides gains."""
        column = self.columns[split.column]
        left = _table(split.left, column)[column.codes[members]]
        gains = [
            max((cut.gain for j in self.usable if (cut := self._cut(j, side)) is not None), default=0.0)
            for side in (members[left], members[~left])
        ]
        return sum(gains)

    def _cut(self, j: int, members: Index) -> _Split | None:
        column, y, w = self.columns[j], self.target[members], self.weight[members]
        return _cut(j, column.codes[members], column, y, w, self.smallest)


def _table(codes: Codes, column: Column) -> npt.NDArray[np.bool_]:
    """Return for every code of a column whether it is one of these."""
    chosen = np.zeros(len(column.labels), dtype=bool)
    chosen[codes] = True
    return chosen


def shallow_tree(
    columns: Sequence[Column],
    usable: Sequence[int],
    target: Array,
    weight: Array,
    *,
    depth: int,
    leaves: int,
    smallest: int,
) -> list[Leaf]:
    """Split everyone by one usable column at a time, where squared deviations of the target fall most."""
    tree = _Tree(columns, usable, target, weight, smallest, depth)
    grown = [Leaf(np.arange(len(target), dtype=np.int32))]
    splits = [tree.best(grown[0])]
    while len(grown) < leaves:
        gains = [split.gain if split is not None else 0.0 for split in splits]
        k = int(np.argmax(gains))
        split = splits[k]
        if split is None:
            break
        pair = list(_divided(grown[k], split, columns))
        grown[k : k + 1] = pair
        splits[k : k + 1] = [tree.best(leaf) for leaf in pair]
    return grown


def _cut(
    j: int, codes: npt.NDArray[np.integer], column: Column, y: Array, w: Array, smallest: int
) -> _Split | None:
    """Return the best cut of one column: categories stand in the order of their means, which is optimal."""
    size = np.bincount(codes)
    present = np.flatnonzero(size)
    total, moment = np.bincount(codes, w)[present], np.bincount(codes, w * y)[present]
    if column.nominal:
        order = np.argsort(moment / total, kind="stable")
        present, total, moment = present[order], total[order], moment[order]
    count = np.cumsum(size[present])
    left, sum_left = np.cumsum(total)[:-1], np.cumsum(moment)[:-1]
    right, sum_right = total.sum() - left, moment.sum() - sum_left
    allowed = (count[:-1] >= smallest) & (count[-1] - count[:-1] >= smallest)
    if not allowed.any():
        return None
    whole = moment.sum() ** 2 / total.sum()
    gain = np.where(allowed, sum_left**2 / left + sum_right**2 / right - whole, -np.inf)
    at = int(np.argmax(gain))
    return _Split(float(gain[at]), j, present[: at + 1], present[at + 1 :])


def _divided(leaf: Leaf, split: _Split, columns: Sequence[Column]) -> Iterator[Leaf]:
    """Yield the two sides; the codes of an ordered column meet half-way, at the first on the right."""
    column = columns[split.column]
    before = leaf.codes.get(split.column, np.arange(len(column.labels)))
    if column.nominal:
        sides = [np.setdiff1d(before, split.right), np.sort(split.right)]
    else:
        cut = split.right.min()
        sides = [before[before < cut], before[before >= cut]]
    for side in sides:
        members = leaf.members[_table(side, column)[column.codes[leaf.members]]]
        yield Leaf(members, {**leaf.codes, split.column: side}, leaf.depth + 1)
