"""Everyone divided by the values of some columns: measured in one pass, no lists of members needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from calibrant.groups.batches import Lists
from calibrant.groups.column_codes import Codes, Column, narrowest
from calibrant.groups.metric import SUMS, Curves, curves_of
from calibrant.groups.rules import Rule, conjunction, equality
from calibrant.groups.variants import Terms
from calibrant.kernels.segments import Index, counting_sort, partition_curves

MOST_CELLS = 1 << 18  # beyond this only occupied cells are numbered


@dataclass(frozen=True, eq=False)
class Partition:
    """One subpopulation per combination of values of the columns; `cell` numbers that of every record.

    No columns make one of everyone.
    `codes` holds the value of each column in every cell, `kept` the cells that are still of interest.
    """

    columns: Sequence[Column]
    cell: Codes
    codes: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64]

    @classmethod
    def by(cls, columns: Sequence[Column]) -> Partition:
        """Divide everyone by the values of the columns."""
        cell, codes = _combined(columns)
        return cls(columns, cell, codes, np.arange(len(codes)))

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def offered(self) -> int:
        """How many combinations of values there are, those that nobody has among them."""
        return math.prod(len(column.labels) for column in self.columns)

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """Who is in each, in words."""
        if not self.columns:
            return [Rule()]
        return [
            conjunction(equality(column, int(code)) for column, code in zip(self.columns, row, strict=True))
            for row in self.codes[self.kept]
        ]

    def members_of(self, k: int) -> Index:
        """Return the members of subpopulation k."""
        return np.flatnonzero(self.cell == self.kept[k]).astype(np.int32)

    def select(self, kept: Sequence[int]) -> Partition:
        """Return some of the subpopulations."""
        return self if len(kept) == len(self) else replace(self, kept=self.kept[list(kept)])

    @cached_property
    def lists(self) -> Lists:
        """The same with the members of each as a list."""
        counts = np.bincount(self.cell, minlength=len(self.codes))
        ends = np.cumsum(counts)
        members = np.empty(len(self.cell), dtype=np.int32)
        counting_sort(self.cell, (ends - counts).astype(np.int64), members)
        everything = Lists([Rule()] * len(counts), members, np.concatenate(([0], ends)).astype(np.int64))
        return replace(everything.select(self.kept.tolist()), rules=self.rules)

    def measure(self, terms: Terms) -> Curves:
        """Measure every part in one pass over the records."""
        if terms.successive:
            return self.lists.measure(terms)
        sums, ends = np.empty((len(self.codes), SUMS)), np.empty((len(self.codes), 4), dtype=np.int64)
        partition_curves(self.cell, terms.rows, sums, ends)
        return curves_of(sums[self.kept], ends[self.kept], terms)


def _combined(columns: Sequence[Column]) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Return the number of each record's cell, and for each cell the codes of the columns."""
    cell = columns[0].codes
    codes = np.arange(len(columns[0].labels))[:, None]
    for column in columns[1:]:
        width = len(column.labels)
        cells = len(codes) * width
        kind = narrowest(cells + 1)  # the width itself must fit, and may be the number of cells
        joint = cell.astype(kind) * kind.type(width) + column.codes
        if cells > MOST_CELLS:
            occupied, numbered = np.unique(joint, return_inverse=True)
            cell = numbered.astype(narrowest(len(occupied)))
        else:
            cell, occupied = joint, np.arange(cells)
        codes = np.column_stack((codes[occupied // width], occupied % width))
    return cell, codes
