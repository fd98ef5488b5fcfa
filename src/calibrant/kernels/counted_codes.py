"""Rows that are alike, counted once, with what draws a Poisson number for many of them at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

UNSURE = 255  # a byte that leaves the number open
SPARE = 6.0  # standard deviations by which the Poisson numbers are meant to fall short of n
LEAST_MEAN = 0.01
MOST_ALIKE = 64  # rows that one Poisson number counts: its byte leaves a tenth of the numbers open


class PoissonBytes:
    """Poisson numbers by one random byte each; few bytes leave the number open, to be settled by `rest`.

    Of 256 bytes, floor(256 P(k)) mean k. `rest` holds, for the others, the cumulative chances of 0, 1, 2...
    """

    def __init__(self, mean: float) -> None:
        numbers = np.arange(1, 21 + math.ceil(mean + 10 * math.sqrt(mean)))
        chances = math.exp(-mean) * np.cumprod(np.concatenate([[1.0], mean / numbers]))
        chances[-1] += max(0.0, 1.0 - float(chances.sum()))
        sure = np.floor(256 * chances).astype(np.int64)
        self.numbers: Bytes = np.full(256, UNSURE, dtype=np.uint8)
        self.numbers[: sure.sum()] = np.repeat(np.arange(len(chances)), sure)
        self.rest: Array = np.cumsum(chances - sure / 256)
        self.rest /= self.rest[-1]


@dataclass(frozen=True, slots=True, eq=False)
class CountedCodes:
    """Rows of codes (one code below `size` per model) in an order of the codes alone, equal rows once.

    `distinct` is the number in `codes` of each of the n rows. `pieces` hold all rows again, cut
    into runs of equal rows: the codes of all runs of one length, and what draws for a run of that length.
    """

    codes: Codes
    distinct: npt.NDArray[np.int32]
    size: int
    pieces: tuple[tuple[PoissonBytes, Codes], ...]

    @classmethod
    def of(cls, columns: Sequence[npt.NDArray[np.int64]], size: int) -> CountedCodes:
        """Count the rows that have a code in each of the columns."""
        ordered = _ordered(columns, size)
        changes = np.flatnonzero(np.any(ordered[1:] != ordered[:-1], axis=1)) + 1
        counts = np.diff(np.concatenate(([0], changes, [len(ordered)])))
        codes = ordered[np.concatenate(([0], changes))]
        distinct = np.repeat(np.arange(len(codes), dtype=np.int32), counts)
        return cls(codes, distinct, size, tuple(_pieces(codes, counts)))


def _ordered(columns: Sequence[npt.NDArray[np.int64]], size: int) -> Codes:
    """Put the rows in an order of their codes alone: rows with the same codes are the same row."""
    if len(columns) == 2:  # one number per row, which sorts fast
        pairs = np.sort(columns[0] * size + columns[1])
        return np.stack(np.divmod(pairs, size), axis=1).astype(np.int32)
    return np.stack(columns, axis=1).astype(np.int32)[np.lexsort(tuple(columns))]


def _pieces(codes: Codes, counts: npt.NDArray[np.int64]) -> list[tuple[PoissonBytes, Codes]]:
    """Cut equal rows into pieces of at most MOST_ALIKE, and put pieces of the same length together."""
    mean = max(LEAST_MEAN, 1.0 - SPARE / math.sqrt(counts.sum()))
    whole, rest = np.divmod(counts, MOST_ALIKE)
    by_length = {length: codes[rest == length] for length in np.unique(rest[rest > 0]).tolist()}
    if whole.any():
        by_length[MOST_ALIKE] = np.repeat(codes, whole, axis=0)
    return [(PoissonBytes(length * mean), part) for length, part in by_length.items()]
