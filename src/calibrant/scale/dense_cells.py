"""Very many rows of few groups, summed by a kernel of our own while DuckDB reads on.

A group-by of a million cells is a hash table that no cache holds. Where all cells of all groups fit into a
table, rows are added to it as they stream in; DuckDB still reads, casts and labels them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels import cell_sums
from calibrant.kernels.cell_sums import add_rows
from calibrant.results import Array
from calibrant.scale.cells import CellTable, codes_in_a_group, reject_code

LEAST_ROWS = 4_000_000  # fewer are grouped by DuckDB before Arrow and machine code are loaded
MOST_CELLS = 2**22  # of all groups; 64 bytes each
AT_ONCE = 2_000_000  # rows that are sorted together
BATCH = 1_000_000  # rows that DuckDB hands over, at most
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


class GroupNumbers:
    """Numbers groups in the order they are seen, batch by batch; `seen` has their values."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}

    def of(self, columns: list[Any], rows: int) -> npt.NDArray[np.int32]:
        """Return the number of the group of every row, from one Arrow array per column of groups."""
        import pyarrow as pa

        packed, parts = np.zeros(rows, dtype=np.int64), []
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            values = encoded.dictionary.to_pylist()
            packed = packed * len(values) + encoded.indices.to_numpy(zero_copy_only=False)
            parts.append(values)
        distinct = packed
        if len(columns) > 1:  # few of all combinations occur
            encoded = pa.array(packed).dictionary_encode()
            packed, distinct = encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
        else:
            distinct = np.arange(len(parts[0]) if parts else 1)
        numbers = [self._number(_unpacked(int(code), parts)) for code in distinct]
        return np.asarray(numbers, dtype=np.int32)[packed]

    def _number(self, values: tuple[Any, ...]) -> int:
        key = tuple(_key(value) for value in values)
        if key not in self._numbers:
            self._numbers[key] = len(self.seen)
            self.seen.append(values)
        return self._numbers[key]


def _key(value: Any) -> Any:
    """Return what tells values apart: True is not 1, and NaN is itself."""
    return type(value), "NaN" if isinstance(value, float) and math.isnan(value) else value


def _unpacked(code: int, parts: list[list[Any]]) -> tuple[Any, ...]:
    values = []
    for known in reversed(parts):
        code, place = divmod(code, len(known))
        values.append(known[place])
    return tuple(reversed(values))


def sum_stream(
    batches: Iterator[Any], cells: int, progress: Callable[[int], object] | None
) -> tuple[CellTable, list[tuple[Any, ...]]]:
    """Sum Arrow batches of prediction, outcome and groups; return the cells and the groups' values.

    A second thread adds rows while the next ones are read. `progress` is called with the rows read.
    """
    dense, groups = DenseCells(cells), GroupNumbers()
    waiting: list[tuple[Array, Array, npt.NDArray[np.int32]]] = []
    held = read = 0
    at_work: Future[None] | None = None
    with ThreadPoolExecutor(1) as pool:
        for batch in batches:
            v, y = (batch.column(k).to_numpy(zero_copy_only=False) for k in range(2))
            others = [batch.column(k) for k in range(2, batch.num_columns)]
            waiting.append((v, y, groups.of(others, len(v))))
            held, read = held + len(v), read + len(v)
            if held >= AT_ONCE:
                at_work = _handed_over(pool, at_work, dense, len(groups.seen), waiting)
                waiting, held = [], 0
            if progress is not None:
                progress(read)
        at_work = _handed_over(pool, at_work, dense, len(groups.seen), waiting)
        at_work.result()
    return dense.occupied(), groups.seen


def _handed_over(
    pool: ThreadPoolExecutor,
    before: Future[None] | None,
    dense: DenseCells,
    groups: int,
    waiting: list[tuple[Array, Array, npt.NDArray[np.int32]]],
) -> Future[None]:
    """Let the second thread add the rows that wait, once it has added those before."""
    if before is not None:
        before.result()
    dense.make_room(groups)

    def work() -> None:
        if waiting:
            dense.add(*(np.concatenate(column) for column in zip(*waiting, strict=True)))

    return pool.submit(work)
