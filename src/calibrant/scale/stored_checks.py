"""Whether what a file says of a sketch can be true: every field is checked before it is believed."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from calibrant.errors import UnreadableFileError, sentence
from calibrant.scale.cells import SUMS, CellTable, Whole, cell_codes, codes_in_a_group

SLACK = 1e-6  # relative: sums are taken in any order


def foreign(given: str) -> UnreadableFileError:
    """Build the error for a file that calibrant did not write."""
    return UnreadableFileError(sentence("sketch", "must be as calibrant writes it", given))


def check_labels(by: tuple[Any, ...], labels: tuple[tuple[Any, ...], ...]) -> None:
    """Refuse labels that no sketch has: of another length, type, or twice the same."""
    if not all(isinstance(name, str) for name in by) or len(set(by)) != len(by):
        raise foreign("got columns of groups that are not distinct names")
    for label in labels:
        if len(label) != len(by) or not all(_is_label(item) for item in label):
            raise foreign(f"got the label {label!r}")
    if len(set(labels)) != len(labels) or (not by and labels != ((),)):
        raise foreign("got labels twice")


def check_parts(parts: tuple[Any, ...]) -> None:
    """Refuse parts that are no content ids."""
    if not all(isinstance(part, str) and re.fullmatch("[0-9a-f]+", part) for part in parts):
        raise foreign("got parts that are no content ids")


def _is_label(item: Any) -> bool:
    if isinstance(item, float):
        return not math.isnan(item)
    return item is None or isinstance(item, (str, int))


def check_places(group: Whole, cell: Whole, groups: int, cells: int) -> None:
    """Refuse cells and groups that do not exist."""
    if len(group) != len(cell) or np.any((group < 0) | (group >= groups)):
        raise foreign("got a group that does not exist")
    if np.any((cell < 0) | (cell >= codes_in_a_group(cells))):
        raise foreign("got a cell that does not exist")


def check_table(table: CellTable, cells: int) -> None:
    """Refuse counts, sums and ranges that no records have."""
    if {len(table.counts), table.sums.shape[1], len(table.low), len(table.high)} != {len(table.keys)}:
        raise foreign("got columns of different lengths")
    if np.any(np.diff(table.keys) <= 0):
        raise foreign("got a cell twice, or out of order")
    if np.any(table.counts <= 0):
        raise foreign("got a cell without records")
    if not np.all(np.isfinite(table.sums)) or np.any(table.sums < 0):
        raise foreign("got a sum that is negative or not finite")
    good = table.keys % codes_in_a_group(cells) < cells + 2
    if table.sums[:, ~good].any():
        raise foreign("got sums of rows that were left out")
    _check_ranges(table[good], cells)
    _check_sums(table[good])


def _check_ranges(table: CellTable, cells: int) -> None:
    inside = (table.low >= 0) & (table.low <= table.high) & (table.high <= 1)
    if not np.all(inside):  # also where one is not a number
        raise foreign("got predictions outside of [0, 1], or the smallest above the largest")
    codes = table.keys % codes_in_a_group(cells)
    if np.any(cell_codes(table.low, cells) != codes) or np.any(cell_codes(table.high, cells) != codes):
        raise foreign("got predictions outside of their cell")


def _check_sums(table: CellTable) -> None:
    """Hold each sum against the bounds that the others give it."""
    w, ww, wv, wy, wyv, spread, null, mixed = (table.sums[place] for place in range(len(SUMS)))
    more, n = 1 + SLACK, table.counts.astype(np.float64)
    tiny, root = 1e-300, 1e-150
    rules = (
        w > 0,
        wv <= w * table.high * more + tiny,
        wv * more + tiny >= w * table.low,
        wy <= w * more,
        wyv <= np.minimum(wv, wy * table.high) * more + tiny,
        spread <= w * more / 4,
        null <= ww * more / 4 + tiny,
        np.sqrt(ww) <= w * more + root,  # roots, because the squares of large weights overflow
        np.sqrt(ww) * np.sqrt(n) * more + root >= w,
        mixed <= n * more / 4,
    )
    if not all(np.all(rule) for rule in rules):
        raise foreign("got sums that do not belong together")
