"""Large groups in a few thousand cells of neighbouring predictions, made for all groups at once.

The interval of a group's difference needs sums of a smooth function of its predictions. A cell takes the mean
of its predictions, which are close together or of the same rank: what that changes is of second order, less
than a ten-thousandth of the interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.groups.gap_interval import gap_interval
from calibrant.groups.group_parts import Certain
from calibrant.inference.large_counts import normal_shift_interval
from calibrant.kernels.member_sums import member_sums
from calibrant.kernels.segments import Index
from calibrant.records import Records
from calibrant.results import Array

LARGE = 2**15  # records from which a group is taken by cells
CELLS = 2**9  # of equal width, and as many of equal numbers
HIGHEST = 1.0 - 2.0**-53  # prediction below 1; means of such may be rounded to 1


class CondensedGroup(NamedTuple):
    """What `gap_interval` asks of a group: one entry per cell of predictions other than 0 and 1."""

    logits: Array
    known: Array  # the rate of outcomes
    mass: Array  # records
    never: Certain
    always: Certain
    weight: float
    gap: float


class CondensedRecords:
    """Records with outcomes 0 and 1 and without weights, cut into cells of neighbouring predictions."""

    def __init__(self, records: Records) -> None:
        p = records.prediction
        edges = np.searchsorted(p, np.append(np.arange(CELLS) / CELLS, 1.0))
        ranks = np.searchsorted(p, p[np.arange(CELLS) * len(p) // CELLS])  # ties stay together
        starts = np.unique(np.concatenate([edges, ranks, [np.searchsorted(p, 0.0, side="right")]]))
        begins = np.zeros(len(p), dtype=np.int32)
        begins[starts[starts < len(p)]] = 1
        self._records = records
        self._cells = np.cumsum(begins, dtype=np.int32)
        self._of_certain = (
            int(self._cells[0]) if p[0] == 0.0 else -1,
            int(self._cells[-1]) if p[-1] == 1.0 else -1,
        )

    def group(self, members: Index) -> CondensedGroup:
        """Return the cells of some records."""
        count, predicted, events = member_sums(
            members, self._cells, self._records.prediction, self._records.outcome
        )
        held = np.flatnonzero(count)
        never, always = (_certain(held == cell, count[held], events[held]) for cell in self._of_certain)
        gap = float(events.sum() - predicted.sum()) / len(members)
        free = held[~np.isin(held, self._of_certain)]
        mass = count[free]
        rates = np.minimum(predicted[free] / mass, HIGHEST)
        logits = np.log(rates) - np.log1p(-rates)
        return CondensedGroup(logits, events[free] / mass, mass, never, always, len(members), gap)

    def interval(self, members: Index, confidence: float) -> tuple[float, float] | None:
        """Return the interval of the difference of a group; None where its events vary too little."""
        group = self.group(members)
        events = round(float(group.mass @ group.known))
        shifts = normal_shift_interval(group.logits, events, confidence, group.mass)
        return None if shifts is None else gap_interval(group, shifts, confidence)


def _certain(which: npt.NDArray[np.bool_], count: Array, events: Array) -> Certain:
    weight = float(count[which].sum())
    return Certain(weight, float(events[which].sum()), weight)
