"""The subpopulations that are tested together: taken in as they come, measured, and then forgotten.

Only numbers are kept of each, and the members of the few worst for their curves, so that memory stays a
small multiple of the data however many subpopulations there are.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from calibrant.cores import WORKERS, on_all_cores
from calibrant.groups.batches import Batch
from calibrant.groups.condensed import LARGE, CondensedRecords
from calibrant.groups.family_null import adjusted_pvalues
from calibrant.groups.gap_interval import gap_interval, shift_interval
from calibrant.groups.group import CONFIDENCE, Group, GroupCurve, NotTested, contribution
from calibrant.groups.group_parts import part_of
from calibrant.groups.metric import Curves
from calibrant.groups.partition import Partition
from calibrant.groups.rules import Rule
from calibrant.groups.variants import Terms
from calibrant.kernels.segments import Index, thinned_curve
from calibrant.progress import Progress, tell
from calibrant.records import Records
from calibrant.results import Array

CURVES = 5  # worst subpopulations whose curves are kept
SHOWN = 50  # worst subpopulations whose rows are looked at for an interval: as many as tables show
CHART_POINTS = 512
BROWNIAN = {"kuiper": math.sqrt(8.0 / math.pi), "mean": math.sqrt(2.0 / math.pi)}  # null means, in sigmas


class Audited(Protocol):
    """What is divided into subpopulations: Records, or the Strata of a sketch."""

    @property
    def n(self) -> int:
        """How many rows there are."""

    @property
    def dropped(self) -> int:
        """How many rows were left out."""

    @property
    def prediction(self) -> Array:
        """The prediction of each member."""


class Simulator(Protocol):
    """What knows the statistics of subpopulations if every prediction is right."""

    def z(self, batch: Batch, deviation: Array) -> Array:
        """Return simulated z, one row per subpopulation, one column per draw."""


@dataclass(slots=True, eq=False)
class Family:
    """Take batches of subpopulations; test each distinct one that is large enough.

    Shares and means are by the records' own weights: those of `plain`, where `terms` has others.
    """

    records: Audited
    terms: Terms
    null: Simulator | None
    min_size: int
    min_variance: float = 0.0
    progress: Progress | None = None
    plain: Terms | None = None
    expected: int = 0
    rules: list[Rule] = field(default_factory=list)
    parts: list[Curves] = field(default_factory=list)
    described: list[Curves] = field(default_factory=list)
    simulated: list[Array] = field(default_factory=list)
    seen: set[tuple[int, float]] = field(default_factory=set)
    worst: list[tuple[float, Batch]] = field(default_factory=list)
    too_small: int = 0
    duplicates: int = 0
    over_limit: int = 0

    def take_all(self, batches: Iterable[Batch], limit: int, offered: int) -> None:
        """Test up to `limit` new subpopulations of some batches, measured on all cores, a few ahead.

        The batches together offer so many. Once the limit is reached the rest is counted and not looked at.
        """
        with ThreadPoolExecutor(WORKERS) as pool:
            for batch, curves in self._measured(batches, pool):
                offered -= batch.offered
                limit -= self.take(batch, limit, curves)
                if limit == 0:
                    break
        self.over_limit += offered

    def _measured(self, batches: Iterable[Batch], pool: ThreadPoolExecutor) -> Iterator[tuple[Batch, Curves]]:
        ahead: deque[tuple[Batch, Future[Curves]]] = deque()
        for batch in batches:
            ahead.append((batch, pool.submit(batch.measure, self.terms)))
            if len(ahead) > 2 * WORKERS:
                first, curves = ahead.popleft()
                yield first, curves.result()
        for batch, curves in ahead:
            yield batch, curves.result()

    def take(self, batch: Batch, limit: int, curves: Curves | None = None) -> int:
        """Test up to `limit` new subpopulations of the batch; return how many were.

        The first to come is everyone, tested whatever their number.
        """
        curves = batch.measure(self.terms) if curves is None else curves
        least = self.min_size if self.rules else 1
        small = curves.size < least
        if isinstance(batch, Partition):
            small &= curves.size > 0  # a combination that nobody has is no subpopulation
        self.too_small += int(np.count_nonzero(small))
        large = np.flatnonzero(curves.size >= least).tolist()
        batch, curves = batch.select(large), curves.take(large)
        fresh = self._fresh(curves)
        if self.rules:
            doubtful = (curves.sigma * curves.weight) ** 2 >= self.min_variance
            self.too_small += sum(not doubtful[k] for k in fresh)
            fresh = [k for k in fresh if doubtful[k]]
        self.over_limit += max(0, len(fresh) - limit)
        batch, curves = batch.select(fresh[:limit]), curves.take(fresh[:limit])
        if len(batch) == 0:
            return 0
        self.parts.append(curves)
        self.described.append(curves if self.plain is None else batch.measure(self.plain))
        self.rules.extend(batch.rules)
        if self.null is not None:
            self.simulated.append(self.null.z(batch, curves.sigma * curves.weight))
        self._remember_worst(batch, curves.z)
        tell(self.progress, len(self.rules), max(self.expected, len(self.rules)))
        return len(batch)

    def count_again(self, sizes: Iterable[int]) -> None:
        """Count subpopulations that were taken before as what they are: too small, or the same as another."""
        for size in sizes:
            if size < self.min_size:
                self.too_small += 1
            else:
                self.duplicates += 1

    def _fresh(self, curves: Curves) -> list[int]:
        """Return which are not the same set of members as one before."""
        fresh = []
        for k, mark in enumerate(zip(curves.size.tolist(), curves.mark.tolist(), strict=True)):
            if mark in self.seen:
                self.duplicates += 1
            else:
                self.seen.add(mark)
                fresh.append(k)
        return fresh

    def _remember_worst(self, batch: Batch, z: Array) -> None:
        for k in np.argsort(-z, kind="stable")[:SHOWN].tolist():
            if len(self.worst) < SHOWN or z[k] > self.worst[-1][0]:
                self.worst.append((float(z[k]), batch.select([k])))
                self.worst.sort(key=lambda one: -one[0])
                del self.worst[SHOWN:]

    def not_tested(self) -> NotTested:
        """Return what was left out, and why."""
        return NotTested(self.too_small, self.duplicates, self.over_limit)

    def ranked(self) -> tuple[Group, ...]:
        """Return all subpopulations, largest z first; larger gaps and sizes first among equals."""
        z, sigma, size = (_column(self.parts, name) for name in ("z", "sigma", "size"))
        pvalue, draws = self._pvalues()
        first, last, direction = (_column(self.parts, name) for name in ("first", "last", "direction"))
        kuiper, gap = _column(self.parts, "kuiper"), _column(self.parts, "gap")
        lower, upper = _column(self.parts, "lower"), _column(self.parts, "upper")
        size_of = np.abs(gap) if self.terms.statistic == "mean" else kuiper
        expected = self._expected(sigma)
        described = ("weight", "mean_prediction", "mean_outcome")
        weight, predicted, observed = (_column(self.described, name) for name in described)
        share = weight / weight[0]
        value = self.records.prediction
        intervals = self._intervals()
        order = sorted(range(len(z)), key=lambda k: (-z[k], -size_of[k], -size[k], self.rules[k]))
        return tuple(
            Group(
                name=str(self.rules[k]),
                rule=self.rules[k],
                size=int(size[k]),
                share=float(share[k]),
                kuiper=float(kuiper[k]),
                gap=float(gap[k]),
                expected=float(expected[k]),
                sigma=float(sigma[k]),
                z=float(z[k]),
                metric=contribution(float(z[k]), float(size_of[k]), float(sigma[0])),
                pvalue=None if pvalue is None else float(pvalue[k]),
                predictions=("none", "too low", "too high")[int(direction[k])],
                start=float(value[first[k]] if first[k] >= 0 else value[0]),
                stop=float(value[last[k]] if last[k] >= 0 else value[-1]),
                mean_prediction=float(predicted[k]),
                mean_outcome=float(observed[k]),
                lower=float(lower[k]),
                upper=float(upper[k]),
                interval=intervals.get(self.rules[k]),
                draws=draws,
                tested_by=self.terms.statistic,
            )
            for k in order
        )

    def _pvalues(self) -> tuple[Array | None, int]:
        """Return the adjusted p-values, if any, and the draws behind them."""
        if not self.simulated:
            return None, 0
        simulated = np.concatenate(self.simulated)
        return adjusted_pvalues(_column(self.parts, "tested"), simulated), simulated.shape[1]

    def _intervals(self) -> dict[Rule, tuple[float, float]]:
        """Return the intervals of the worst subpopulations, of the rows themselves."""
        if not isinstance(self.records, Records) or not _are_rates(self.records):
            return {}
        y = self.records.outcome
        exact = not self.records.weighted and bool(np.all((y == 0) | (y == 1)))
        cells = CondensedRecords(self.records) if exact and len(y) >= LARGE else None
        return {batch.rules[0]: self._interval(batch.members_of(0), exact, cells) for _, batch in self.worst}

    def _interval(self, members: Index, exact: bool, cells: CondensedRecords | None) -> tuple[float, float]:
        records = self.records
        assert isinstance(records, Records)
        ends = cells.interval(members, CONFIDENCE) if cells and len(members) >= LARGE else None
        if ends is not None:
            return ends
        y, weight = records.outcome[members], records.weight[members] if records.weighted else None
        part = part_of("", records.prediction[members], y, weight)
        return gap_interval(part, shift_interval(part, exact, CONFIDENCE), CONFIDENCE)

    def _expected(self, sigma: Array) -> Array:
        """Return the mean of each statistic if calibrated: of the draws, or else that of Brownian motion."""
        if not self.simulated:
            return sigma * BROWNIAN[self.terms.statistic]
        mean = np.concatenate([part.mean(axis=1) for part in self.simulated])
        return np.asarray(np.multiply(sigma, mean, where=sigma > 0, out=np.zeros_like(sigma)))

    def curves(self) -> tuple[GroupCurve, ...]:
        """Return the curves of the worst subpopulations."""
        return tuple(on_all_cores(self._curve, (batch for _, batch in self.worst[:CURVES])))

    def _curve(self, alone: Batch) -> GroupCurve:
        members = alone.members_of(0)
        stretch = -(-2 * len(members) // CHART_POINTS)
        points = np.zeros((CHART_POINTS + 4, 3))
        count = thinned_curve(members, self.terms.rows, stretch, points)
        weight, prediction, curve = np.vstack((points[:1], points[:count])).T
        weight[0] = curve[0] = 0.0  # the curve starts at 0
        return GroupCurve(alone.rules[0], weight / weight[-1], prediction, curve / weight[-1])


def _are_rates(records: Records) -> bool:
    """Return whether predictions and outcomes lie in [0, 1]; responses of any size need not."""
    return all(array.min() >= 0 and array.max() <= 1 for array in (records.prediction, records.outcome))


def _column(parts: Sequence[Curves], name: str) -> Array:
    """Return one number of every subpopulation, in the order they came."""
    return np.concatenate([getattr(part, name) for part in parts])
