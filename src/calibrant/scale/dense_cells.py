"""Very many rows of few groups, summed by a kernel of our own while DuckDB reads on.

A group-by of a million cells is a hash table that no cache holds. Where all cells of all groups fit into a
table, rows are added to it as they stream in; DuckDB still reads, casts and labels them.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from calibrant.kernels import cell_sums
from calibrant.kernels.cell_sums import add_rows
from calibrant.results import Array
from calibrant.scale.cells import CellTable, codes_in_a_group, reject_code

LEAST_ROWS = 4_000_000  # fewer are grouped by DuckDB before Arrow and machine code are loaded
MOST_CELLS = 2**22  # of all groups; 64 bytes each
TABLE_COLUMNS = 8
FAULTS = (
    "prediction is missing",
    "outcome is missing",
    "prediction outside [0, 1]",
    "outcome outside [0, 1]",
)


class TooManyGroupsError(Exception):
    """Raised where the cells of all groups do not fit into the table."""


def serves(rows: int, cells: int) -> bool:
    """Return whether rows are worth the kernel, and the cells of one group fit into the table."""
    return rows >= LEAST_ROWS and codes_in_a_group(cells) <= MOST_CELLS and find_spec("pyarrow") is not None


class DenseCells:
    """A table with a place for each cell of each group seen so far."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.size = codes_in_a_group(cells)
        self.reasons = np.array([reject_code(cells, reason) for reason in FAULTS], dtype=np.int64)
        self.table: Array = np.zeros((0, TABLE_COLUMNS))

    def make_room(self, groups: int) -> None:
        """Make the table large enough for so many groups."""
        wanted = groups * self.size
        if wanted > max(MOST_CELLS, self.size):
            raise TooManyGroupsError
        if wanted > len(self.table):
            new = np.zeros((wanted - len(self.table), TABLE_COLUMNS))
            new[:, cell_sums.LOW], new[:, cell_sums.HIGH] = np.inf, -np.inf
            self.table = np.concatenate([self.table, new])

    def add(self, v: Array, y: Array, group: npt.NDArray[np.int32]) -> None:
        """Add rows; the table has room for their groups."""
        add_rows(v, y, group, self.cells, self.size, self.reasons, self.table)

    def occupied(self) -> CellTable:
        """Return the cells that hold rows, keyed by group and code; those of rejected rows have no sums."""
        keys = np.flatnonzero(self.table[:, cell_sums.COUNT])
        rows = self.table[keys]
        good = keys % self.size < self.cells + 2
        rows[~good, 1:] = 0.0
        count = rows[:, cell_sums.COUNT]
        spread = rows[:, cell_sums.SPREAD]
        held = np.where(good, count, 0.0)
        wv, wy, wyv, mixed = (rows[:, k] for k in (cell_sums.V, cell_sums.Y, cell_sums.YV, cell_sums.MIXED))
        sums = np.array([held, held, wv, wy, wyv, spread, spread, mixed])
        low, high = rows[:, cell_sums.LOW] + 0.0, rows[:, cell_sums.HIGH] + 0.0
        return CellTable(keys, count.astype(np.int64), sums, low, high)
