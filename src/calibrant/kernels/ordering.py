"""One order of the rows, ties by a hash of everything else known; and sums of many rows in many cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.parallel import map_threads
from calibrant.results import Array

RowIndex = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Sorting = tuple[RowIndex, Array]  # the order that sorts some values, and the values in it
AT_ONCE = 2**14  # rows of a part
HALVED_ABOVE = 2**19  # words from which a second core repays cutting them in half


def canonical(
    values: Array, outcome: npt.NDArray[Any], weight: Array | None, columns: Sequence[npt.NDArray[Any]]
) -> Sorting:
    """Sort values, ties as `ties_ordered` breaks them; -0.0 becomes 0.0."""
    order, ordered = ascending(values)
    return ties_ordered(order, ordered, outcome, weight, columns), ordered


def ties_ordered(
    order: RowIndex,
    ordered: Array,
    outcome: npt.NDArray[Any],
    weight: Array | None,
    columns: Sequence[npt.NDArray[Any]],
) -> RowIndex:
    """Return an order that sorts predictions, ties broken by a hash of what else is known of the rows."""
    # Ties are harmless to a curve, but random numbers are dealt out by position: row order must not decide
    # who gets which
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    tied = np.append(same, False) | np.append(False, same)
    where: Any = slice(None) if tied.all() else np.flatnonzero(tied)
    rows, runs = order[where], ordered[where]
    number = np.cumsum(np.append(False, runs[1:] != runs[:-1])).astype(np.uint64)
    refined = order.copy()
    refined[where] = rows[_sorted_by(number, _digest(rows, outcome, weight, columns))]
    return refined


def _parts(count: int) -> Iterator[slice]:
    """Cut rows into parts that stay in the cache: pages of new memory cost more than the arithmetic."""
    return (slice(start, start + AT_ONCE) for start in range(0, count, AT_ONCE))


def _digest(
    rows: RowIndex, outcome: npt.NDArray[Any], weight: Array | None, columns: Sequence[npt.NDArray[Any]]
) -> Words:
    digest = np.zeros(len(rows), dtype=np.uint64)
    for part in _parts(len(digest)):
        which = rows[part]
        _mix(digest[part], (outcome[which].astype(np.float64) + 0.0).view(np.uint64))
        if weight is not None:
            _mix(digest[part], weight[which].view(np.uint64))
        for column in columns:
            _mix(digest[part], column[which].astype(np.uint64))
    return digest


def _mix(digest: Words, item: Words) -> None:
    """Mix one more column into the digests (the finalizer of splitmix64)."""
    digest ^= item
    digest += np.uint64(0x9E3779B97F4A7C15)
    digest ^= digest >> np.uint64(30)
    digest *= np.uint64(0xBF58476D1CE4E5B9)
    digest ^= digest >> np.uint64(27)
    digest *= np.uint64(0x94D049BB133111EB)
    digest ^= digest >> np.uint64(31)


def _sorted_by(number: Words, digest: Words) -> RowIndex:
    """Return the order that sorts by `number` (0, 1, ..., in any order), then `digest`, then place."""
    # as in `ascending`: the words of the number, the leading bits of the digest and the place are sorted
    width = np.uint64(max(1, int(number.max()).bit_length()))
    low = np.uint64((1 << (len(number) - 1).bit_length()) - 1)
    words = np.empty_like(number)
    for part in _parts(len(words)):
        leading = number[part] << (np.uint64(64) - width)
        leading |= digest[part] >> width
        leading &= ~low
        words[part] = leading | np.arange(part.start, part.start + len(leading), dtype=np.uint64)
    _sort(words)
    before, after = words[:-1], words[1:]
    alike = [part.start + np.flatnonzero(before[part] ^ after[part] <= low) for part in _parts(len(before))]
    places = np.concatenate([np.empty(0, dtype=np.int64), *alike])  # that differ in low bits alone
    words &= low
    order = words.view(np.int64)
    doubtful = places[digest[order[places]] != digest[order[places + 1]]]
    if len(doubtful):
        leading = (number[order] << (np.uint64(64) - width) | digest[order] >> width) & ~low
        again = _runs_around(leading, doubtful)
        order[again] = order[again][np.lexsort((digest[order[again]], leading[again]))]
    return order


def _sort(words: Words) -> None:
    """Sort words that are all different, long columns on two cores (equal ones would slow the cut down)."""
    if len(words) < HALVED_ABOVE:
        words.sort()
        return
    middle = len(words) // 2
    words.partition(middle)
    map_threads(np.ndarray.sort, (words[:middle], words[middle:]))


def _runs_around(words: Words, places: RowIndex) -> RowIndex:
    alike = np.unique(words[places])
    starts = np.searchsorted(words, alike)
    lengths = np.searchsorted(words, alike, side="right") - starts
    runs: RowIndex = np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    return runs


def ascending(values: Array) -> Sorting:
    """Sort values, ties in any order; -0.0 becomes 0.0."""
    values = values + 0.0
    if not 0.0 <= values.min() <= values.max() <= 1.0:
        order = np.argsort(values)
        return order, values[order]
    # Quicker than np.argsort: a word holds the leading bits of a value (whose two top bits are clear) and the
    # row's number. Rows that agree in the leading bits but not in the others are put right afterwards
    low = np.uint64((1 << (len(values) - 1).bit_length()) - 1)
    words = values.view(np.uint64) << np.uint64(2)
    words &= ~low
    words |= np.arange(len(values), dtype=np.uint64)
    _sort(words)
    words &= low
    order = words.view(np.int64)
    result = values[order]
    swapped = np.flatnonzero(result[1:] < result[:-1])
    if len(swapped):
        leading = (result.view(np.uint64) << np.uint64(2)) & ~low
        where = _runs_around(leading, swapped)
        right = np.lexsort((result[where], leading[where]))
        order[where], result[where] = order[where][right], result[where][right]
    return order, result


SHIFT = 12  # neighboring cells in a run: 2^12 of 64 bytes each
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
    """Add rows to the cells of their group; `codes` cells per group, the last ones for rows to reject."""
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
