"""Subpopulations that the user names: masks, categorical columns, and all combinations of columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.batches import Batch, Lists
from calibrant.groups.column_codes import Column
from calibrant.groups.partition import Partition
from calibrant.groups.rules import Rule, named_mask
from calibrant.inputs import array_of, check_aligned, check_same_length
from calibrant.kernels.segments import Index

Masks = dict[str, npt.NDArray[np.bool_]]

MOST_MEMBERS = 1 << 20


def as_masks(groups: Any, length: int, labels: Any = None) -> Masks | None:
    """Return boolean masks by name when that is what was given, None when the groups are columns.

    They have `length` rows; `labels` is the index of the predictions that they belong to.
    """
    if not isinstance(groups, Mapping):
        return None
    arrays = {str(name): array_of(mask, f"mask {name!r}") for name, mask in groups.items()}
    if not arrays or any(array.dtype.kind != "b" for array in arrays.values()):
        return None
    for name, array in arrays.items():
        if array.ndim != 1:
            raise InvalidInputError(
                sentence(f"mask {name!r}", "must be one-dimensional", f"got shape {array.shape}")
            )
        check_same_length(array, range(length), (f"mask {name!r}", "y_prob"))
    for name, mask in groups.items():
        check_aligned(mask, labels, (f"mask {name!r}", "y_prob"))
    return arrays


def everyone(n: int) -> Partition:
    """Return the full population, subpopulation 0 of the paper."""
    return Partition([], np.zeros(n, dtype=np.uint8), np.empty((1, 0), dtype=np.int64), np.zeros(1, np.int64))


def masked(masks: Masks, rows: npt.NDArray[np.int64]) -> Iterator[Batch]:
    """Yield one subpopulation per mask, about a million members at a time."""
    names: list[Rule] = []
    lists: list[Index] = []
    for name, mask in masks.items():
        names.append(named_mask(name))
        lists.append(np.flatnonzero(mask[rows]).astype(np.int32))
        if sum(map(len, lists)) >= MOST_MEMBERS:
            yield Lists.of(names, lists)
            names, lists = [], []
    yield Lists.of(names, lists)


def offered_combinations(columns: Sequence[Column], depth: int) -> int:
    """Return how many combinations of values there are, those that nobody has among them."""
    depth = min(depth, len(columns))
    sums = [1] + [0] * depth  # elementary symmetric sums of the numbers of values
    for column in columns:
        for size in range(depth, 0, -1):
            sums[size] += sums[size - 1] * len(column.labels)
    return sum(sums[1:])


def combinations(columns: Sequence[Column], depth: int) -> Iterator[Batch]:
    """Yield every combination of values of 1, 2, ... `depth` columns, few columns first."""
    for size in range(1, min(depth, len(columns)) + 1):
        for chosen in itertools.combinations(columns, size):
            yield Partition.by(chosen)
