"""Trimming of long curves by a queue of buckets: a third of the time that a heap takes, but for odd curves.

See kernels/trimming, whose `upper_ends` gives the same values. Positions lie in equally wide buckets, each a
list of steps, newest first. A cumulative curve moves little from step to step, so that neighbours in time are
neighbours in memory.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

PATIENCE = 8  # steps of searching per position before a heap is the better choice
LEAST_PEAK = 1e-280  # below this the number of buckets per unit is not finite


def largest_ends(positions: Array, gaps: Array) -> Array | None:
    """Return the largest position left after each step, or None where a heap serves better.

    The gaps must add up to at most 1. Mass at 0 never runs out then: it is the last of the positions, one
    more than there are steps.
    """
    peak = float(positions.max())
    if peak <= 0.0:
        return np.zeros(len(gaps))
    if peak < LEAST_PEAK:
        return None
    buckets = max(1024, 1 << (len(gaps) - 1).bit_length())
    ends = np.empty(len(gaps))
    return ends if _ends_by_buckets(positions, gaps, (buckets - 1) / peak, buckets, ends) else None


@compiled
def _ends_by_buckets(positions: Array, gaps: Array, scale: float, buckets: int, ends: Array) -> bool:
    """Fill `ends`; return False where positions crowd so that the search takes too long.

    `words` has one bit per bucket in use, 32 per word, and `blocks` one bit per word in use. `best` is the
    step with the largest position, in the bucket `top`.
    """
    zero = len(gaps)
    newest, older, mass = np.full(buckets, -1, np.int32), np.empty(zero + 1, np.int32), np.empty(zero + 1)
    words, blocks = np.zeros(buckets >> 5, np.int64), np.zeros(buckets >> 10, np.int64)
    newest[0], older[zero], mass[zero], words[0], blocks[0] = zero, -1, np.inf, 1, 1
    top, best, patience = 0, zero, PATIENCE * zero
    for step in range(zero):
        rest = gaps[step]
        if positions[step] > 0.0:
            bucket = int(positions[step] * scale)
            older[step] = newest[bucket]
            newest[bucket] = step
            mass[step] = 2.0 * rest
            words[bucket >> 5] |= 1 << (bucket & 31)
            blocks[bucket >> 10] |= 1 << ((bucket >> 5) & 31)
            if bucket > top or (bucket == top and positions[step] > positions[best]):
                top, best = bucket, step
        while mass[best] <= rest:
            rest -= mass[best]
            other = newest[top]
            if other == best:
                newest[top] = older[best]
            else:
                while older[other] != best:
                    other = older[other]
                older[other] = older[best]
            if newest[top] < 0:
                top = _next_bucket(top, words, blocks)
            best = newest[top]
            other = older[best]
            while other >= 0:
                if positions[other] > positions[best]:
                    best = other
                other = older[other]
                patience -= 1
            if patience < 0:
                return False
        mass[best] -= rest
        ends[step] = positions[best]
    return True


def _next_bucket(empty: int, words: Whole, blocks: Whole) -> int:
    """Return the highest bucket in use below one that has become empty; the lowest is always in use."""
    word, block = empty >> 5, empty >> 10
    words[word] &= ~(1 << (empty & 31))
    if words[word] == 0:
        blocks[block] &= ~(1 << (word & 31))
        while blocks[block] == 0:
            block -= 1
        word = (block << 5) + math.frexp(blocks[block])[1] - 1
    return (word << 5) + math.frexp(words[word])[1] - 1
