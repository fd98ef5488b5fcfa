"""Cells of a grouped sketch, divided into groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations as choices
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.groups.column_codes import Column
from calibrant.groups.metric import SUMS, Curves, curves_of
from calibrant.groups.partition import Partition
from calibrant.groups.strata import Strata, Whole
from calibrant.groups.subpopulations import everyone
from calibrant.groups.variants import Terms
from calibrant.kernels.segments import Index, partition_curves
from calibrant.kernels.strata_extremes import strata_extremes
from calibrant.results import Array

EPS = float(np.finfo(np.float64).eps)


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
