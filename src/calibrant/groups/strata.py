"""Strata: the cells of a grouped sketch, which is all that an audit needs where the rows are far away.

A subpopulation that the columns of the sketch can name is a union of its finest groups, so its curve at the
ends of cells is exact, and so are its weight, its mean residual and its null deviation. What is lost is where
in a cell a residual lies, and that has a proven bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations as choices
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.groups.coding import Column
from calibrant.groups.metric import SUMS, Curves, curves_of
from calibrant.groups.partition import Partition
from calibrant.groups.subpopulations import everyone
from calibrant.groups.variants import StatisticName, Terms
from calibrant.kernels.segments import Index, partition_curves
from calibrant.kernels.strata import strata_extremes
from calibrant.results import Array

Whole = npt.NDArray[np.int64]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Strata:
    """One entry per occupied cell of each finest group, by cell and then by group.

    `labels` are those of the finest groups, `group` says which one an entry belongs to. Then come the sums
    over its records of 1, w, w^2, w v, w y, w y v and w^2 v (1 - v), and the least and largest v.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    dropped: int
    cell: Whole
    group: Whole
    counts: Whole
    weight: Array
    squared_weight: Array
    predicted: Array
    outcome: Array
    both: Array
    null_variance: Array
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @property
    def cells(self) -> int:
        """Number of occupied cells, all groups together."""
        return 1 + int(np.count_nonzero(np.diff(self.cell)))

    @cached_property
    def prediction(self) -> Array:
        """The mean prediction of the entry's cell, over all groups: one value per cell."""
        starts = np.flatnonzero(np.diff(self.cell, prepend=-1))
        mean = np.add.reduceat(self.predicted, starts) / np.add.reduceat(self.weight, starts)
        low, high = np.minimum.reduceat(self.low, starts), np.maximum.reduceat(self.high, starts)
        return np.repeat(np.clip(mean, low, high), np.diff(starts, append=len(self)))

    def terms(self, statistic: StatisticName) -> Terms:
        """Return what each entry adds to a curve, with a fixed random key per place."""
        keys = np.random.default_rng(0).random(len(self))
        residual = self.outcome - self.predicted
        return Terms(np.column_stack((self.prediction, self.weight, residual, keys)), False, statistic)

    def scaled(self) -> Strata:
        """Return the same with weights in units of the heaviest, as far as the cells know it."""
        unit = float(np.max(self.squared_weight / self.weight))
        once = {name: getattr(self, name) / unit for name in ("weight", "predicted", "outcome", "both")}
        twice = {name: getattr(self, name) / unit / unit for name in ("squared_weight", "null_variance")}
        return replace(self, **once, **twice)

    def coarse(self, cells: int) -> Strata:
        """Merge neighbouring cells into about `cells`: half of the cuts even in weight, half in prediction.

        Predictions of 0 and 1, which leave no doubt, keep cells of their own.
        """
        if self.cells <= cells:
            return self
        value, last = self.prediction, np.append(np.diff(self.cell) != 0, True)
        so_far = np.cumsum(self.weight)[last]
        middle = np.diff(so_far, prepend=0.0) / 2 + np.concatenate(([0.0], so_far[:-1]))
        known = value[last]
        place = (known - known[0]) / (known[-1] - known[0])
        cut = (middle / so_far[-1] * (cells / 2)).astype(np.int64) + (place * (cells / 2)).astype(np.int64)
        cut += (known > 0).astype(np.int64) + (known == 1)
        return self._merged(np.repeat(cut, np.diff(np.flatnonzero(last), prepend=-1)))

    def _merged(self, cell: Whole) -> Strata:
        order = np.lexsort((self.group, cell))
        cell, group = cell[order], self.group[order]
        starts = np.flatnonzero((np.diff(cell, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
        added: dict[str, Any] = {
            one.name: np.add.reduceat(getattr(self, one.name)[order], starts) for one in fields(self)[5:-2]
        }
        low, high = (
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
        )
        return replace(self, cell=cell[starts], group=group[starts], low=low, high=high, **added)


@dataclass(frozen=True, eq=False)
class StrataPartition(Partition):
    """Everyone divided by columns of a sketch; `cell` numbers the part of every finest group.

    Bounds come from all cells of the sketch, p-values from the fewer cells of `tested`.
    """

    strata: Strata
    tested: Strata

    def members_of(self, k: int) -> Index:
        """Return the entries of subpopulation k."""
        return np.flatnonzero(self.cell[self.strata.group] == self.kept[k]).astype(np.int32)

    def measure(self, terms: Terms) -> Curves:
        """Measure every part in one pass over the entries."""
        curves = self._measured(self.strata, terms)
        if self.tested is self.strata:
            return curves
        return replace(curves, tested=self._measured(self.tested, self.tested.terms(terms.statistic)).z)

    def _measured(self, strata: Strata, terms: Terms) -> Curves:
        part, parts = self.cell[strata.group].astype(np.int32), len(self.codes)
        sums, ends = np.empty((parts, SUMS)), np.empty((parts, 4), dtype=np.int64)
        partition_curves(part, terms.rows, sums, ends)

        def total(term: npt.NDArray[Any]) -> Array:
            return np.bincount(part, weights=term, minlength=parts).astype(np.float64, copy=False)

        sums[:, 0], sums[:, 2], sums[:, 3] = map(
            total, (strata.counts, strata.predicted, strata.null_variance)
        )
        sums[:, 8] = total(strata.predicted + strata.outcome)
        rounding = _rounding(sums, total(strata.weight * strata.counts), np.bincount(part, minlength=parts))
        bounds = self._bounds(strata, terms, part, sums, rounding)
        curves = curves_of(sums[self.kept], ends[self.kept], terms)
        return replace(curves, lower=bounds[0][self.kept], upper=bounds[1][self.kept])

    def _bounds(
        self, strata: Strata, terms: Terms, part: Index, sums: Array, rounding: Array
    ) -> tuple[Array, Array]:
        """Bound the statistic of every part on the raw rows: the mean is known, the range is a little more.

        On the way through a cell the curve has taken some of the positive residuals and some of the negative.
        """
        weight = np.where(sums[:, 0] > 0, sums[:, 1], 1.0)
        if terms.statistic == "mean":
            size = np.abs(sums[:, 4]) / weight
            return np.maximum(size - rounding, 0.0), size + rounding
        under = np.maximum(strata.outcome - strata.both, 0.0)
        over = np.maximum(strata.predicted - strata.both, 0.0)
        within = np.column_stack((under, over, strata.low, strata.high))
        extremes = np.column_stack((sums[:, 5], sums[:, 6]))
        strata_extremes(part, terms.rows, within, extremes)
        least, most = (sums[:, 5] - sums[:, 6]) / weight, (extremes[:, 0] - extremes[:, 1]) / weight
        return np.maximum(least - rounding, 0.0), most + 2 * rounding


def _rounding(sums: Array, weighted_counts: Array, entries: Whole) -> Array:
    """Bound the rounding of a part's sums over its records, in any order, as a share of its weight."""
    weight = np.where(sums[:, 0] > 0, sums[:, 1], 1.0)
    return np.asarray(4 * EPS * (weighted_counts / weight + entries + 16))


def divided(
    strata: Strata, tested: Strata, columns: Sequence[Column], depth: int
) -> Iterator[StrataPartition]:
    """Yield everyone, then every combination of values of 1, 2, ... `depth` columns."""
    chosen = (c for size in range(1, min(depth, len(columns)) + 1) for c in choices(columns, size))
    for part in (everyone(len(strata.labels)), *map(Partition.by, chosen)):
        yield StrataPartition(part.columns, part.cell, part.codes, part.kept, strata, tested)
