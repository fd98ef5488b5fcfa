"""Tallies of resampled rows: how often each cell of each model was drawn, many resamples in one pass.

Memory answers the jumps to n random rows slowly. But rows drawn N times in all, each the same Poisson number
of times independently, are N rows drawn with replacement, given N. So every row gets a Poisson number, in
order, with a mean that leaves N a little below n, and only the few still missing are picked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.results import Array

Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

UNSURE = 255  # a byte that leaves the number open
SPARE = 6.0  # standard deviations by which the Poisson numbers are meant to fall short of n
MIN_MEAN = 0.01
MAX_ALIKE_ROWS = 64  # rows that one Poisson number counts: its byte leaves a tenth of the numbers open


class PoissonBytes:
    """Poisson numbers by one random byte each; few bytes leave the number open, to be settled by `rest`."""

    def __init__(self, mean: float) -> None:
        # of 256 bytes, floor(256 P(k)) mean k; `rest` holds, for the others, the cumulative chances
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
    """Rows of codes (one code below `size` per model) in an order of the codes alone, equal rows once."""

    codes: Codes
    distinct: npt.NDArray[np.int32]  # the place in `codes` of each of the n rows
    size: int
    pieces: tuple[tuple[PoissonBytes, Codes], ...]  # runs of equal rows by length: what draws for one, codes

    @classmethod
    def of(cls, columns: Sequence[npt.NDArray[np.int64]], size: int) -> CountedCodes:
        if len(columns) == 2:  # one number per row, which sorts fast
            pairs = np.sort(columns[0] * size + columns[1])
            ordered = np.stack(np.divmod(pairs, size), axis=1).astype(np.int32)
        else:
            ordered = np.stack(columns, axis=1).astype(np.int32)[np.lexsort(tuple(columns))]
        changes = np.flatnonzero(np.any(ordered[1:] != ordered[:-1], axis=1)) + 1
        counts = np.diff(np.concatenate(([0], changes, [len(ordered)])))
        codes = ordered[np.concatenate(([0], changes))]
        # equal rows are cut into pieces of at most MAX_ALIKE_ROWS; those of the same length are put together
        whole, rest = np.divmod(counts, MAX_ALIKE_ROWS)
        by_length = {length: codes[rest == length] for length in np.unique(rest[rest > 0]).tolist()}
        if whole.any():
            by_length[MAX_ALIKE_ROWS] = np.repeat(codes, whole, axis=0)
        mean = max(MIN_MEAN, 1.0 - SPARE / math.sqrt(len(ordered)))
        pieces = tuple((PoissonBytes(length * mean), part) for length, part in by_length.items())
        return cls(codes, np.repeat(np.arange(len(codes), dtype=np.int32), counts), size, pieces)


Counts = npt.NDArray[np.int32]

CHUNK = 2**15  # rows whose random bytes are drawn at once: they stay in the cache


def resampled_tallies(generator: np.random.Generator, rows: CountedCodes, draws: int) -> Counts:
    """Draw n rows with replacement, `draws` times: how often each code was drawn, by model, code and draw."""
    n = len(rows.distinct)
    counts: Counts = np.zeros((rows.codes.shape[1], rows.size, draws), dtype=np.int32)
    for poisson, codes in rows.pieces:
        for start in range(0, len(codes), CHUNK):
            some = codes[start : start + CHUNK]
            words = -(-len(some) * draws // 8)
            noise = generator.integers(0, 2**64 - 1, size=words + 1, dtype=np.uint64, endpoint=True)
            with np.errstate(over="ignore"):  # counters wrap around
                tally_poisson(some, noise[1:].view(np.uint8), poisson.numbers, poisson.rest, noise[0], counts)
    drawn = counts[0].sum(axis=0, dtype=np.int64)
    for k in range(draws):
        if drawn[k] > n:  # hardly ever; what was drawn is left aside, whatever it was, so the law is the same
            counts[:, :, k] = 0
            drawn[k] = 0
        picked = rows.distinct[generator.integers(0, n, size=n - drawn[k])]
        tally_picked(rows.codes, picked, counts, k)
    return counts


@compiled
def tally_poisson(
    codes: Codes, noise: Bytes, numbers: Bytes, rest: Array, seed: np.uint64, counts: Counts
) -> None:
    """Add a Poisson number of every row to the counts of its codes; `noise` is random bytes, used up."""
    draws = counts.shape[2]
    _to_poisson(noise, numbers, rest, seed)
    for model in range(codes.shape[1]):
        tally = counts[model]
        for row in range(len(codes)):
            code = np.uint32(codes[row, model])
            first = np.uint64(row * draws)
            for k in range(draws):
                tally[code, k] += noise[first + np.uint64(k)]


def _to_poisson(noise: Bytes, numbers: Bytes, rest: Array, seed: np.uint64) -> None:
    state = np.uint64(seed)
    for i in range(len(noise)):
        number = numbers[noise[i]]
        if number == UNSURE:
            state += np.uint64(0x9E3779B97F4A7C15)
            number = np.uint8(np.searchsorted(rest, _uniform(state), side="right"))
        noise[i] = number


def _uniform(state: np.uint64) -> float:
    """Return a number in [0, 1) from a counter, by the mixing of SplitMix64 (Steele, Lea and Flood, 2014)."""
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return float(mixed >> np.uint64(11)) / 9007199254740992.0


@compiled
def tally_picked(codes: Codes, picked: npt.NDArray[np.int32], counts: Counts, draw: int) -> None:
    for row in picked:
        for model in range(codes.shape[1]):
            counts[model, codes[row, model], draw] += 1
