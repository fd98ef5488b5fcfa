"""The grid of a sketch: which cell a prediction falls in, and the sums that are kept of each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.inputs import whole_number
from calibrant.kernels import ordering as cell_sums
from calibrant.kernels.ordering import add_rows
from calibrant.results import Array
from calibrant.sketch.labels import Label

Whole = npt.NDArray[np.int64]
CELLS = 65_536
MAX_CELLS = 2**30
MIN_SQUARED_WEIGHT = 1e-290  # of a sum of squared weights; below that digits were lost

# v the prediction, y the outcome, w the weight; `mixed` is positive where an outcome is neither 0 nor 1
SUMS = ("w", "ww", "wv", "wy", "wyv", "wv(1-v)", "wwv(1-v)", "mixed")

# Rows that do not enter the sums are counted under codes of their own, behind those of the cells.
ZERO_WEIGHT = "weight is 0"
REJECTS = (
    ZERO_WEIGHT,
    "prediction is missing",
    "outcome is missing",
    "weight is missing",
    "prediction outside [0, 1]",
    "outcome outside [0, 1]",
    "weight negative or infinite",
)


def check_cells(cells: int) -> int:
    return whole_number("cells", cells, 1, MAX_CELLS)


def codes_in_a_group(cells: int) -> int:
    """Return how many codes there are: 0 and 1, `cells` between them, and the reasons to reject a row."""
    return cells + 2 + len(REJECTS)


def reject_code(cells: int, reason: str) -> int:
    return cells + 2 + REJECTS.index(reason)


def cell_codes(v: Array, cells: int) -> Whole:
    """Return the cell of each prediction: 0 for v = 0, else floor(v cells) + 1, so cells + 1 for v = 1."""
    return (np.floor(v * cells) + (v > 0)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CellTable:
    """One column per occupied cell: its key (ascending), count, sums, smallest and largest prediction."""

    keys: Whole
    counts: Whole
    sums: Array  # one row for each of SUMS
    low: Array
    high: Array

    def __getitem__(self, chosen: Any) -> CellTable:
        return CellTable(*(getattr(self, one.name)[..., chosen] for one in fields(self)))

    def __len__(self) -> int:
        return len(self.keys)

    def renamed(self, keys: Whole) -> CellTable:
        return merged_tables([replace(self, keys=keys)])


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that a sketch holds; the key of a cell is group number * codes in a group + code."""

    cells: int
    by: tuple[str, ...]
    labels: tuple[Label, ...]
    table: CellTable
    parts: tuple[str, ...] = ()


def rejected_rows(table: CellTable, cells: int) -> dict[str, int]:
    codes = table.keys % codes_in_a_group(cells) - (cells + 2)
    totals = np.zeros(len(REJECTS), dtype=np.int64)
    np.add.at(totals, codes[codes >= 0], table.counts[codes >= 0])
    return {reason: int(total) for reason, total in zip(REJECTS, totals, strict=True) if total}


def merged_tables(tables: Sequence[CellTable]) -> CellTable:
    """Add tables up, cell by cell; counts stay exact, and the order of two tables does not matter."""
    keys = np.concatenate([table.keys for table in tables])
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    if not len(ordered):
        return tables[0]
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    counts, low, high = (
        np.concatenate([getattr(table, name) for table in tables])[order]
        for name in ("counts", "low", "high")
    )
    sums = np.concatenate([table.sums for table in tables], axis=1)[:, order]
    return CellTable(
        ordered[starts],
        np.add.reduceat(counts, starts),
        np.add.reduceat(sums, starts, axis=1),
        np.minimum.reduceat(low, starts),
        np.maximum.reduceat(high, starts),
    )


def tabulated(y: Array, v: Array, w: Array | None, cells: int) -> CellTable:
    codes = cell_codes(v, cells)
    if len(codes) > cells:  # long data touches most cells: no need to sort it
        keys, place = np.arange(cells + 2), codes
    else:
        keys, place = np.unique(codes, return_inverse=True)
    counts = np.bincount(place, minlength=len(keys))

    def total(term: Array) -> Array:
        return np.bincount(place, weights=term, minlength=len(keys)).astype(np.float64, copy=False)

    if w is None:
        spread = total(v * (1 - v))
        weights: list[Array] = [counts.astype(np.float64)] * 2
        sums = [*weights, total(v), total(y), total(y * v), spread, spread]
    else:
        wv = w * v
        sums = [total(w), total(w * w), total(wv), total(w * y), total(wv * y)]
        sums += [total(wv * (1 - v)), total(w * wv * (1 - v))]
    low, high = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
    np.minimum.at(low, place, v)
    np.maximum.at(high, place, v)
    table = CellTable(keys, counts, np.array([*sums, total(y * (1 - y))]), low, high)
    return table[counts > 0]


def check_squares(weights: Array, squares: Array, groups: Whole | None = None) -> None:
    """Refuse weights so small that their squares lose digits; this holds within each group."""
    groups = np.zeros(len(weights), dtype=np.int64) if groups is None else groups
    totals = np.bincount(groups, weights=squares)
    worst = int(np.argmin(totals))
    if totals[worst] < MIN_SQUARED_WEIGHT:
        hint = "multiply the weights by a constant, such as 1e100: only their ratios count"
        got = f"got weights that sum to {weights[groups == worst].sum():g}"
        raise InvalidInputError("weights of the sketch", "must have squares that a float can hold", got, hint)


def empty_table() -> CellTable:
    whole = np.zeros(0, dtype=np.int64)
    return CellTable(whole, whole, np.zeros((len(SUMS), 0)), np.zeros(0), np.zeros(0))


def dropped_rows(cells: int, count: int) -> CellTable:
    """Count rows that an array lacked a value in; which of its columns it was is not recorded."""
    key = np.array([reject_code(cells, "prediction is missing")])
    return CellTable(key, np.array([count]), np.zeros((len(SUMS), 1)), np.zeros(1), np.zeros(1))


MIN_STREAMED_ROWS = 4_000_000  # fewer are grouped by DuckDB before Arrow and machine code are loaded
MAX_DENSE_CELLS = 2**22  # of all groups; 64 bytes each
TABLE_COLUMNS = 8
STREAMED_REJECTS = (
    "prediction is missing",
    "outcome is missing",
    "prediction outside [0, 1]",
    "outcome outside [0, 1]",
)


class TooManyGroupsError(Exception):
    """Raised where the cells of all groups do not fit into the table."""


class DenseCells:
    """A table with a place for each cell of each group seen so far, faster than a group-by of as many."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.size = codes_in_a_group(cells)
        self.reasons = np.array([reject_code(cells, reason) for reason in STREAMED_REJECTS], dtype=np.int64)
        self.table: Array = np.zeros((0, TABLE_COLUMNS))

    def make_room(self, groups: int) -> None:
        wanted = groups * self.size
        if wanted > max(MAX_DENSE_CELLS, self.size):
            raise TooManyGroupsError
        if wanted > len(self.table):
            new = np.zeros((wanted - len(self.table), TABLE_COLUMNS))
            new[:, cell_sums.LOW], new[:, cell_sums.HIGH] = np.inf, -np.inf
            self.table = np.concatenate([self.table, new])

    def add(self, v: Array, y: Array, group: npt.NDArray[np.int32]) -> None:
        add_rows(v, y, group, self.cells, self.size, self.reasons, self.table)

    def occupied(self) -> CellTable:
        """Return the cells that hold rows, keyed by group and code; those of rejected rows have no sums."""
        keys = np.flatnonzero(self.table[:, cell_sums.COUNT])
        rows = self.table[keys]
        good = keys % self.size < self.cells + 2
        rows[~good, 1:] = 0.0
        count = rows[:, cell_sums.COUNT]
        held = np.where(good, count, 0.0)
        places = (cell_sums.V, cell_sums.Y, cell_sums.YV, cell_sums.SPREAD, cell_sums.SPREAD, cell_sums.MIXED)
        sums = np.array([held, held, *(rows[:, place] for place in places)])
        low, high = rows[:, cell_sums.LOW] + 0.0, rows[:, cell_sums.HIGH] + 0.0
        return CellTable(keys, count.astype(np.int64), sums, low, high)
