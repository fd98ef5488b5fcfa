"""The null of an audit from a sketch: outcomes of the finest groups, which every group adds up."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from calibrant.groups.batches import Batch
from calibrant.groups.strata import Strata
from calibrant.groups.strata_partition import StrataPartition
from calibrant.groups.variants import StatisticName
from calibrant.inference.stand_ins import StandIns
from calibrant.results import Array
from calibrant.seeds import in_blocks

AT_A_TIME = (
    64  # entries that count as one number when blocks of draws are made: groups are visited one by one
)


@dataclass(slots=True, eq=False)
class StrataNull:
    """Promise the simulated z of batches as they come; `keep` simulates them all, a few draws at a time.

    In each cell of a finest group every record is an event with the mean prediction of that cell: exact
    where the cell holds one prediction and its records weigh the same.
    """

    strata: Strata
    statistic: StatisticName
    draws: int
    seed: int
    promised: list[tuple[_Segments, Array, Array]] = field(default_factory=list)

    def z(self, batch: Batch, deviation: Array) -> Array:
        """Return an array that will hold the simulated z, one row per subpopulation, one column per draw."""
        assert isinstance(batch, StrataPartition)  # an audit of a sketch has no others
        simulated = np.zeros((len(batch), self.draws))
        self.promised.append((_Segments.of(batch, self.strata), deviation, simulated))
        return simulated

    def keep(self) -> None:
        """Fill in all that was promised."""
        stand_ins = StandIns.of_sums(self.strata.counts, self.strata.weight, self.strata.squared_weight)
        rates = np.clip(self.strata.predicted / self.strata.weight, 0.0, 1.0)

        def work(generator: np.random.Generator, rows: int) -> Array:
            residuals = stand_ins.outcomes(generator, rates, rows) - self.strata.predicted
            return np.hstack([part.statistics(residuals, self.statistic) for part, _, _ in self.promised])

        width = max(1, len(self.strata) // AT_A_TIME)
        ranges = in_blocks(work, self.draws, width=width, seed=self.seed)
        start = 0
        for _, deviation, simulated in self.promised:
            mine = ranges[:, start : start + len(simulated)].T
            simulated[:] = mine / np.where(deviation == 0, 1.0, deviation)[:, None]
            start += len(simulated)


@dataclass(frozen=True, slots=True, eq=False)
class _Segments:
    """The entries of each subpopulation one after another, and where its cells and itself begin."""

    entries: npt.NDArray[np.intp]
    cells: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]  # in numbers of cells

    @classmethod
    def of(cls, batch: StrataPartition, strata: Strata) -> _Segments:
        rank = np.full(len(batch.codes), -1)
        rank[batch.kept] = np.arange(len(batch.kept))
        part = rank[batch.cell[strata.group]]
        order = np.argsort(part, kind="stable")
        order = order[np.count_nonzero(part < 0) :]
        fresh = (np.diff(part[order], prepend=-1) != 0) | (np.diff(strata.cell[order], prepend=-1) != 0)
        cells = np.flatnonzero(fresh)
        return cls(
            order, cells, np.searchsorted(part[order][cells], np.arange(len(batch.kept)), side="right")
        )

    def statistics(self, residuals: Array, statistic: StatisticName) -> Array:
        """Return the statistic of every subpopulation per row of residuals, not divided by its weight."""
        steps = np.add.reduceat(residuals[:, self.entries], self.cells, axis=1)
        found, start = np.empty((len(residuals), len(self.ends))), 0
        for k, end in enumerate(self.ends.tolist()):
            curve = np.cumsum(steps[:, start:end], axis=1)
            if statistic == "mean":
                found[:, k] = np.abs(curve[:, -1])
            else:
                found[:, k] = np.maximum(curve.max(axis=1), 0.0) - np.minimum(curve.min(axis=1), 0.0)
            start = end
        return found
