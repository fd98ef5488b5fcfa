"""Forecasting on a grid of cells that splits where it is used: the loop of many rounds, and its single rules.

The rules are plain functions of lists or arrays, so that a step in Python and the compiled loop apply the
same arithmetic, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array

Integers = npt.NDArray[np.int64]


def usable_cell(charges: Sequence[float] | Array, limits: Sequence[float] | Array, start: int) -> int:
    """Return the cell nearest to `start` whose left end is not over, nor its right end under, its limit.

    The leftmost point is never over its limit and the rightmost never under, so both walks end.
    """
    too_high, too_low = charges[start] > limits[start], charges[start + 1] < -limits[start + 1]
    if not too_high and not too_low:
        return start
    left = start
    while charges[left] > limits[left]:
        left -= 1
    right = start + 1
    while charges[right] < -limits[right]:
        right += 1
    right -= 1
    if not too_high:
        return right
    if not too_low:
        return left
    return left if start - left <= right - start else right


def charged_right(
    outcome: float, left: float, right: float, low_limit: float, high_limit: float, slack: float
) -> bool:
    """Return whether the right end of the cell is charged; `left` and `right` are the ends' charges.

    An event is charged to the right end and a non-event to the left. With slack the other end takes it
    where that evens the charges out and its own limit allows it.
    """
    if slack == 0.0:
        return outcome == 1.0
    if outcome == 1.0:
        return not (left > right and left >= -low_limit)
    return right < left and right <= high_limit


def cell_is_full(uses: int, left: float, right: float, cost: float, slack: float) -> bool:
    """Return whether a cell has been used often enough to be split."""
    width = right - left
    if slack > 0.0:
        return uses * width * width >= cost
    middle = 0.5 * (left + right)
    return uses * width * 0.5 >= max(middle, 1.0 - middle) * cost


@compiled
def run_grid(
    outcomes: Array, guides: Array, batch_ends: Integers,
    points: Array, charges: Array, limits: Array, uses: Integers, counts: Integers, sums: Array,
    slack: float, cost: float, splits: bool,
    predictions: Array, certificates: Array, steered: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    """Forecast every batch, then learn it. The state is changed in place and has room for more points.

    `counts` holds the number of points, the current cell and the rounds steered; `sums` the distance moved
    and the sum of all absolute charges. `guides` is empty where there is none.
    """
    size = len(outcomes)
    lows, highs, cells = np.empty(size), np.empty(size), np.empty(size, dtype=np.int64)
    begin = 0
    for end in batch_ends:
        for t in range(begin, end):
            last = counts[0] - 2
            start = min(counts[1], last)
            if len(guides) > 0:
                start = np.searchsorted(points[: counts[0]], guides[t], side="right") - 1
                start = min(max(start, 0), last)
            cell = usable_cell(charges, limits, start)
            counts[1] = cell
            low, high = points[cell], points[cell + 1]
            steered[t] = len(guides) > 0 and cell != start
            counts[2] += steered[t]
            if len(guides) > 0 and slack > 0.0:
                predictions[t] = min(max(guides[t], low), high)
            else:
                predictions[t] = 0.5 * (low + high)
            lows[t], highs[t], cells[t] = low, high, cell
        for t in range(begin, end):
            low, high = lows[t], highs[t]
            i = cells[t]
            k = i + 1
            if points[i] != low or points[k] != high:  # this cell or one before it was split meanwhile
                i = np.searchsorted(points[: counts[0]], low)
                k = np.searchsorted(points[: counts[0]], high)
            c = i
            if charged_right(outcomes[t], charges[i], charges[k], limits[i], limits[k], slack):
                c = k
            before = abs(charges[c])
            charges[c] += points[c] - outcomes[t]
            sums[1] += abs(charges[c]) - before
            sums[0] += abs(predictions[t] - points[c])
            certificates[t] = sums[0] + sums[1]
            if splits and k == i + 1:
                uses[i] += 1
                if cell_is_full(uses[i], low, high, cost, slack):
                    _split(points, charges, limits, uses, counts, i, slack)
        begin = end


def _split(
    points: Array, charges: Array, limits: Array, uses: Integers, counts: Integers, i: int, slack: float
) -> None:
    """Insert the middle of cell i, with a limit that suits the new width at all three points."""
    for s in range(counts[0] - 1, i, -1):
        points[s + 1], charges[s + 1] = points[s], charges[s]
        limits[s + 1], uses[s + 1] = limits[s], uses[s]
    width = points[i + 2] - points[i]
    points[i + 1], charges[i + 1] = 0.5 * (points[i] + points[i + 2]), 0.0
    uses[i], uses[i + 1] = 0, 0
    limit = 2.0 * slack / width
    limits[i + 1] = limit
    limits[i], limits[i + 2] = max(limits[i], limit), max(limits[i + 2], limit)
    counts[0] += 1


def with_room(values: Sequence[float], room: int, dtype: Any = np.float64) -> npt.NDArray[Any]:
    """Return the values as an array with room for more."""
    array = np.zeros(len(values) + room, dtype=dtype)
    array[: len(values)] = values
    return array
