"""Strata: the cells of a grouped sketch, which is all that an audit needs where the rows are far away.

A subpopulation that the columns of the sketch can name is a union of its finest groups, so its curve at the
ends of cells is exact, and so are its weight, its mean residual and its null deviation. What is lost is where
in a cell a residual lies, and that has a proven bound.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.groups.variants import StatisticName, Terms
from calibrant.results import Array

Whole = npt.NDArray[np.int64]


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
