"""Subpopulations that the user names: masks, categorical columns, and all combinations of columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.columns import check_same_length
from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.coding import Column
from calibrant.groups.metric import Batch
from calibrant.groups.result import EVERYONE
from calibrant.groups.rules import conjunction, equality
from calibrant.kernels.segments import Index, counting_sort

Masks = dict[str, npt.NDArray[np.bool_]]

MOST_MEMBERS = 1 << 20
MOST_CELLS = 1 << 18  # beyond this only occupied cells are numbered


def as_masks(groups: Any, length: int) -> Masks | None:
    """Return boolean masks by name when that is what was given, None when the groups are columns."""
    if not isinstance(groups, Mapping):
        return None
    arrays = {str(name): np.asarray(mask) for name, mask in groups.items()}
    if not arrays or any(array.dtype.kind != "b" for array in arrays.values()):
        return None
    for name, array in arrays.items():
        if array.ndim != 1:
            raise InvalidInputError(
                sentence(f"mask {name!r}", "must be one-dimensional", f"got shape {array.shape}")
            )
        check_same_length(array, np.empty(length), (f"mask {name!r}", "y_prob"))
    return arrays


def everyone(n: int) -> Batch:
    """Return the full population, subpopulation 0 of the paper."""
    return Batch.of([EVERYONE], [np.arange(n, dtype=np.int32)])


def masked(masks: Masks, rows: npt.NDArray[np.int64]) -> Iterator[Batch]:
    """Yield one subpopulation a mask, about a million members at a time."""
    names: list[str] = []
    lists: list[Index] = []
    for name, mask in masks.items():
        names.append(name)
        lists.append(np.flatnonzero(mask[rows]).astype(np.int32))
        if sum(map(len, lists)) >= MOST_MEMBERS:
            yield Batch.of(names, lists)
            names, lists = [], []
    yield Batch.of(names, lists)


def combinations(columns: Sequence[Column], depth: int) -> Iterator[Batch]:
    """Yield every occupied combination of values of 1, 2, ... `depth` columns, few columns first."""
    for size in range(1, min(depth, len(columns)) + 1):
        for chosen in itertools.combinations(columns, size):
            yield _cells(chosen)


def _cells(columns: Sequence[Column]) -> Batch:
    """Divide everyone by the values of the columns; members keep the global order."""
    cell, codes = _combined(columns)
    counts = np.bincount(cell, minlength=len(codes))
    starts = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
    members = np.empty(len(cell), dtype=np.int32)
    counting_sort(cell, starts, members)
    occupied = np.flatnonzero(counts)
    rules = [
        conjunction(equality(column, int(code)) for column, code in zip(columns, row, strict=True))
        for row in codes[occupied]
    ]
    return Batch(rules, members, np.concatenate(([0], np.cumsum(counts[occupied]))).astype(np.int64))


def _combined(columns: Sequence[Column]) -> tuple[Index, npt.NDArray[np.int64]]:
    """Return the number of each record's cell, and for each cell the codes of the columns."""
    cell = columns[0].codes
    codes = np.arange(len(columns[0].labels))[:, None]
    for column in columns[1:]:
        width = len(column.labels)
        if len(codes) * width > MOST_CELLS:
            joint = cell.astype(np.int64) * width + column.codes
            occupied, numbered = np.unique(joint, return_inverse=True)
            cell = numbered.astype(np.int32)
        else:
            cell = cell * np.int32(width) + column.codes
            occupied = np.arange(len(codes) * width)
        codes = np.column_stack((codes[occupied // width], occupied % width))
    return cell, codes
