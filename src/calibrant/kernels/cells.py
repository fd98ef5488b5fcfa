"""Sums of many rows in many cells, without a hash table: rows are first sorted roughly by their cell.

Millions of cells do not fit into the processor's cache, so adding rows in the order they come waits for
memory at each of them. Rows that are dealt into runs of neighbouring cells first touch little at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.results import Array

SHIFT = 12  # neighbouring cells in a run: 2^12 of 64 bytes each
COUNT, V, Y, YV, SPREAD, MIXED, LOW, HIGH = range(8)  # columns of a table of cells


@compiled
def add_rows(
    v: Array,
    y: Array,
    group: npt.NDArray[np.int32],
    cells: int,
    codes: int,
    reasons: npt.NDArray[np.int64],
    table: Array,
) -> None:
    """Add rows to the cells of their group; `codes` cells per group, the last ones for rows to reject.

    `reasons` are the codes of rows whose prediction is missing, whose outcome is missing, whose prediction
    is outside [0, 1], and whose outcome is: the first that applies counts.
    """
    runs = (len(table) >> SHIFT) + 2
    key = np.empty(len(v), dtype=np.int32)
    ends = np.zeros(runs, dtype=np.int64)
    for i in range(len(v)):
        key[i] = group[i] * codes + _code(v[i], y[i], cells, reasons)
        ends[(key[i] >> SHIFT) + 1] += 1
    ends = np.cumsum(ends)
    order = np.empty(len(v), dtype=np.int32)
    sorted_v, sorted_y = np.empty(len(v)), np.empty(len(v))
    for i in range(len(v)):
        place = ends[key[i] >> SHIFT]
        ends[key[i] >> SHIFT] = place + 1
        order[place], sorted_v[place], sorted_y[place] = key[i], v[i], y[i]
    for i in range(len(order)):
        _add(table[order[i]], sorted_v[i], sorted_y[i])


def _code(v: float, y: float, cells: int, reasons: npt.NDArray[np.int64]) -> int:
    """Return the cell of a prediction, 0 for v = 0 and else floor(v cells) + 1, or the code of a bad row."""
    if 0.0 <= v <= 1.0 and 0.0 <= y <= 1.0:
        return int(v * cells) + int(v > 0.0)
    if np.isnan(v):
        return int(reasons[0])
    if np.isnan(y):
        return int(reasons[1])
    return int(reasons[2]) if not 0.0 <= v <= 1.0 else int(reasons[3])


def _add(cell: Array, v: float, y: float) -> None:
    cell[COUNT] += 1.0
    cell[V] += v
    cell[Y] += y
    cell[YV] += v * y
    cell[SPREAD] += v * (1.0 - v)
    cell[MIXED] += y * (1.0 - y)
    cell[LOW] = min(cell[LOW], v)
    cell[HIGH] = max(cell[HIGH], v)
