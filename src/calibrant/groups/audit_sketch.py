"""Audit the groups of a Sketch, whose strata are the sums of each cell over each of its finest groups.

Curves are exact at the ends of cells; where in a cell a residual lies is lost, and that has a proven bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.columns import Column, code_columns
from calibrant.errors import InvalidInputError, reject_name
from calibrant.groups.family import TestFamily
from calibrant.groups.statistics import SUMS, Curves, StatisticName, Terms, curves_of
from calibrant.groups.subpopulations import Batch, Partition, combinations, everyone, offered_combinations
from calibrant.inference.null import TwoPointWeights
from calibrant.kernels.groups import Index, partition_curves, strata_extremes
from calibrant.parallel import Progress, in_blocks
from calibrant.results import Array

Whole = npt.NDArray[np.int64]

EPS = float(np.finfo(np.float64).eps)
MIN_EVENTS = 5  # of either outcome in a group that is compared with the others
MAX_ENTRIES = 1 << 18  # cells of finest groups whose outcomes are simulated
MIN_CELLS, MAX_CELLS = 64, 2048  # that p-values come from, however many groups there are
BLOCK_ENTRIES = 64  # entries that count as one number when blocks of draws are made


@dataclass(frozen=True, eq=False)
class Strata:
    """One entry per occupied cell of each finest group, by cell and then by group."""

    by: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    dropped: int
    cell: Whole
    group: Whole
    counts: Whole  # of its records; the six arrays below are sums over them:
    weight: Array  # of w
    squared_weight: Array  # of w^2
    predicted: Array  # of w v
    outcome: Array  # of w y
    both: Array  # of w y v
    null_variance: Array  # of w^2 v (1 - v)
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def cells(self) -> int:
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
        return Terms(np.column_stack((self.prediction, self.weight, residual, keys)), statistic)

    def scaled(self) -> Strata:
        """Return the same with weights in units of the heaviest, as far as the cells know it."""
        unit = float(np.max(self.squared_weight / self.weight))
        once = {name: getattr(self, name) / unit for name in ("weight", "predicted", "outcome", "both")}
        twice = {name: getattr(self, name) / unit / unit for name in ("squared_weight", "null_variance")}
        return replace(self, **once, **twice)

    def coarse(self, cells: int) -> Strata:
        """Merge neighboring cells into about `cells`: half of the cuts even in weight, half in prediction."""
        if self.cells <= cells:
            return self
        value, last = self.prediction, np.append(np.diff(self.cell) != 0, True)
        so_far = np.cumsum(self.weight)[last]
        middle = np.diff(so_far, prepend=0.0) / 2 + np.concatenate(([0.0], so_far[:-1]))
        known = value[last]
        place = (known - known[0]) / (known[-1] - known[0])
        cut = (middle / so_far[-1] * (cells / 2)).astype(np.int64) + (place * (cells / 2)).astype(np.int64)
        cut += (known > 0).astype(np.int64) + (known == 1)  # 0 and 1, which leave no doubt, are apart
        return self._merged(np.repeat(cut, np.diff(np.flatnonzero(last), prepend=-1)))

    def against_others(self, batch: Batch) -> float:
        """Return the p-value of the first subpopulation of a batch against all others in the same cells."""
        from scipy.special import ndtr

        assert isinstance(batch, StrataPartition)
        cells = self.coarse(min(MAX_CELLS, max(1, round(np.sqrt(self.n)))))
        cell = np.unique(cells.cell, return_inverse=True)[1]
        inside = batch.cell[cells.group] == batch.kept[0]
        whole, part = (
            [
                np.bincount(cell[chosen], term[chosen], cell[-1] + 1)
                for term in (cells.weight, cells.squared_weight, cells.outcome, cells.predicted)
            ]
            for chosen in (np.full(len(cell), True), inside)
        )
        if min(part[2].sum(), (part[0] - part[2]).sum()) < MIN_EVENTS * whole[0].sum() / self.n:
            return 1.0
        share, rate = part[0] / whole[0], np.clip(whole[2] / whole[0], 0.0, 1.0)
        excess = (part[2] - part[3]) - share * (whole[2] - whole[3])
        count = np.bincount(cell, cells.counts)
        variance = rate * (1 - rate) * ((1 - 2 * share) * part[1] + share**2 * whole[1])
        variance *= count / np.maximum(count - 1, 1)
        value = whole[3] / whole[0]
        z = [
            abs(float(load @ excess)) / np.sqrt(max(float(load**2 @ variance), 1e-300))
            for load in (np.ones(len(value)), value - np.average(value, weights=whole[0]))
        ]
        return min(1.0, 4 * float(ndtr(-max(z))))

    def _merged(self, cell: Whole) -> Strata:
        order = np.lexsort((self.group, cell))
        cell, group = cell[order], self.group[order]
        starts = np.flatnonzero((np.diff(cell, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
        added: dict[str, Any] = {
            one.name: np.add.reduceat(getattr(self, one.name)[order], starts) for one in fields(self)[5:-2]
        }
        low = np.minimum.reduceat(self.low[order], starts)
        high = np.maximum.reduceat(self.high[order], starts)
        return replace(self, cell=cell[starts], group=group[starts], low=low, high=high, **added)


@dataclass(frozen=True, eq=False)
class StrataPartition(Partition):
    """Everyone divided by columns of a sketch; `cell` numbers the part of every finest group."""

    strata: Strata
    tested: Strata

    def members_of(self, k: int) -> Index:
        return np.flatnonzero(self.cell[self.strata.group] == self.kept[k]).astype(np.int32)

    def measure(self, terms: Terms) -> Curves:
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
        rate = strata.predicted / strata.weight
        sums[:, 9] = total(strata.outcome * (1 - rate) ** 2 + (strata.weight - strata.outcome) * rate**2)
        kish = sums[:, 1] ** 2 / np.maximum(total(strata.squared_weight), 1e-300)
        weight = np.where(sums[:, 0] > 0, sums[:, 1], 1.0)
        # of sums over records in any order, as a share of the weight
        rounding = 4 * EPS * (total(strata.weight * strata.counts) / weight + total(np.ones(len(part))) + 16)
        lower, upper = _bounds(strata, terms, part, sums, weight, rounding)
        curves = curves_of(sums[self.kept], ends[self.kept], terms)
        return replace(curves, lower=lower[self.kept], upper=upper[self.kept], effective=kish[self.kept])


def _bounds(
    strata: Strata, terms: Terms, part: Index, sums: Array, weight: Array, rounding: Array
) -> tuple[Array, Array]:
    """Bound the statistic of every part on the raw rows: the mean is known, the range is a little more."""
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


@dataclass(slots=True, eq=False)
class StrataNull:
    """Promise the simulated z of batches as they come; `keep` simulates them all, a few draws at a time."""

    skewness: ClassVar[float] = 0.0  # signs alone lack it

    strata: Strata
    statistic: StatisticName
    draws: int
    seed: int
    entries: list[tuple[Whole, Whole]] = field(default_factory=list)  # of a group, and the last of each cell
    promised: list[tuple[Array, Array]] = field(default_factory=list)

    def z(self, batch: Batch, deviation: Array) -> Array:
        assert isinstance(batch, StrataPartition)  # an audit of a sketch has no others
        part = batch.cell[self.strata.group]
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.column_stack((batch.kept, batch.kept + 1)))
        for start, end in ends.tolist():
            inside = order[start:end]
            self.entries.append((inside, np.flatnonzero(np.diff(self.strata.cell[inside], append=-1))))
        simulated = np.zeros((len(batch), self.draws))
        self.promised.append((deviation, simulated))
        return simulated

    def keep(self) -> None:
        strata = self.strata
        weights = TwoPointWeights.of_sums(strata.counts, strata.weight, strata.squared_weight)
        # every record has the mean prediction of its cell: exact if predictions and weights in it are equal
        rates = np.clip(strata.predicted / strata.weight, 0.0, 1.0)

        def work(generator: np.random.Generator, rows: int) -> Array:
            residuals = weights.outcomes(generator, rates, rows) - strata.predicted
            found = np.empty((rows, len(self.entries)))
            for k, (inside, last) in enumerate(self.entries):
                curve = np.cumsum(residuals[:, inside], axis=1)[:, last]
                if self.statistic == "mean":
                    found[:, k] = np.abs(curve[:, -1])
                else:
                    found[:, k] = np.maximum(curve.max(axis=1), 0.0) - np.minimum(curve.min(axis=1), 0.0)
            return found

        width = max(1, len(strata) // BLOCK_ENTRIES)
        ranges = iter(in_blocks(work, self.draws, width=width, seed=self.seed).T)
        for deviation, simulated in self.promised:
            for row, divisor in zip(simulated, np.where(deviation == 0, 1.0, deviation), strict=True):
                row[:] = next(ranges) / divisor


def strata_family(
    strata: Strata,
    groups: Any,
    *,
    depth: int,
    limit: int,
    min_size: int,
    min_variance: float,
    statistic: StatisticName,
    draws: int,
    seed: int,
    progress: Progress | None,
) -> tuple[TestFamily, int]:
    """Test everyone and all combinations of columns; return also how many cells were simulated."""
    columns = _columns(strata, groups)
    cells = min(max(MAX_ENTRIES // len(strata.labels), MIN_CELLS), MAX_CELLS)
    tested = strata.coarse(cells) if draws else strata
    offered, seeds = 1 + offered_combinations(columns, depth), count(seed)

    def run(draws: int, progress: Progress | None = None) -> TestFamily:
        null = StrataNull(tested, statistic, draws, next(seeds)) if draws else None
        family = TestFamily(strata, strata.terms(statistic), null, min_size, min_variance, progress)
        family.expected = min(1 + limit, offered)
        parts = chain([everyone(len(strata.labels))], combinations(columns, depth))
        batches = (StrataPartition(p.columns, p.cell, p.codes, p.kept, strata, tested) for p in parts)
        family.take_all(batches, 1 + limit, offered)
        if null is not None:
            null.keep()
        return family

    family = run(draws, progress)
    family.draw_until_decided(run, draws)
    return family, tested.cells


def _columns(strata: Strata, groups: Any) -> list[Column]:
    """Code the labels of the finest groups, column by column: all of them, or those named."""
    named = [groups] if isinstance(groups, str) else list(strata.by if groups is None else groups)
    if not named:
        raise InvalidInputError("groups", "must name a column of the sketch", "got none")
    for name in named:
        if name not in strata.by:
            raise reject_name("column of the sketch", name, list(strata.by))
    values = {name: [label[strata.by.index(name)] for label in strata.labels] for name in named}
    return code_columns(values, len(strata.labels), "groups")


def refuse_with_sketch(given: Mapping[str, Any]) -> None:
    """Say what a sketch holds already, and what needs the rows: `given` are other arguments of `audit`."""
    if any(given[name] is not None for name in ("y_prob", "sample_weight", "pos_label")):
        rule = "holds outcomes, predictions and weights already"
        raise InvalidInputError("sketch", rule, hint="pass it alone")
    if given["covariates"] is not None or len(given["nominal"]):
        hint = "make the sketch with by=[...], and leave covariates out"
        raise InvalidInputError("covariates", "need the rows", "got a sketch", hint)
    if given["variant"] != "plain":
        hint = "audit the rows themselves, or take the plain metric"
        raise InvalidInputError(f"variant {given['variant']!r}", "needs the rows", "got a sketch", hint)
    if given["clusters"] is not None or given["null"] == "signs":
        subject = 'null="signs"' if given["clusters"] is None else "clusters"
        hint = "pass the rows themselves"
        raise InvalidInputError(subject, "must come with single rows", "got a sketch", hint)
