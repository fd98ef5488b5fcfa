"""Simulated sums of w (y - v) over many records: exact coins, a block of records at a time."""

from __future__ import annotations

import numpy as np

from calibrant.groups.family_null import bernoulli_words
from calibrant.kernels.segments import LANES
from calibrant.results import Array

BLOCK = 1 << 12  # records drawn at a time, so that the work stays in the cache


def null_sums(prediction: Array, loads: Array, draws: int, rng: np.random.Generator) -> Array:
    """Return the sum of load (y - v) for each row of `loads` and each draw, y being 1 with probability v.

    All rows of loads see the same simulated outcomes.
    """
    sums = np.zeros((len(loads), draws))
    words = -(-draws // LANES)
    for start in range(0, len(prediction), BLOCK):
        part = slice(start, start + BLOCK)
        coins = bernoulli_words(prediction[part], words, rng)
        bits = np.ascontiguousarray(coins, dtype="<u8").view(np.uint8)
        ones = np.unpackbits(bits, axis=1, bitorder="little")[:, :draws]
        sums += loads[:, part] @ (ones - prediction[part, None])
    return sums
