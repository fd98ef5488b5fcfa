"""Tallies of resampled rows: how often each cell of each model was drawn, many resamples in one pass.

n rows drawn with replacement are a jump to a random row each, and memory answers jumps slowly. But rows
that are drawn N times in all, each the same Poisson number of times independently, are N rows drawn with
replacement, given N. So every row gets a Poisson number, in order, with a mean that leaves N a little below
n, and only the few that are still missing are picked one by one: the same law, without the jumps. Rows
with the same codes are drawn together: sums of Poisson numbers are Poisson numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.kernels.counted_codes import UNSURE, Bytes, Codes, CountedCodes, PoissonBytes
from calibrant.results import Array

Counts = npt.NDArray[np.int32]

CHUNK = 2**15  # rows whose random bytes are drawn at once: they stay in the cache


def resampled_tallies(generator: np.random.Generator, rows: CountedCodes, draws: int) -> Counts:
    """Draw n rows with replacement, `draws` times: how often each code was drawn, by model, code and draw."""
    n = len(rows.distinct)
    counts: Counts = np.zeros((rows.codes.shape[1], rows.size, draws), dtype=np.int32)
    for poisson, codes in rows.pieces:
        for start in range(0, len(codes), CHUNK):
            _tally_chunk(generator, codes[start : start + CHUNK], poisson, counts)
    drawn = counts[0].sum(axis=0, dtype=np.int64)
    for k in range(draws):
        if drawn[k] > n:  # hardly ever; what was drawn is left aside, whatever it was, so the law is the same
            counts[:, :, k] = 0
            drawn[k] = 0
        picked = rows.distinct[generator.integers(0, n, size=n - drawn[k])]
        tally_picked(rows.codes, picked, counts, k)
    return counts


def _tally_chunk(generator: np.random.Generator, codes: Codes, poisson: PoissonBytes, counts: Counts) -> None:
    """Draw the random bytes of a few rows, which stay in the cache, and count what they stand for."""
    words = -(-len(codes) * counts.shape[2] // 8)
    noise = generator.integers(0, 2**64 - 1, size=words + 1, dtype=np.uint64, endpoint=True)
    with np.errstate(over="ignore"):  # counters wrap around
        tally_poisson(codes, noise[1:].view(np.uint8), poisson.numbers, poisson.rest, noise[0], counts)


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
    """Turn random bytes into Poisson numbers, in place."""
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
    """Count the codes of the picked rows."""
    for row in picked:
        for model in range(codes.shape[1]):
            counts[model, codes[row, model], draw] += 1
