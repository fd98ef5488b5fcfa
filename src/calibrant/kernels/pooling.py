"""Isotonic fits of many outcomes at once, for what they score: pool adjacent violators, row by row."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Array = npt.NDArray[np.float64]


@compiled
def isotonic_rates(rates: Array, weights: Array) -> Array:
    """Return the non-decreasing rates closest to `rates` in the weighted sum of squares.

    Weights are positive. One arithmetic at every length: a rate that equals a decision threshold must not
    depend on what has been loaded into the process.
    """
    mass = np.empty(len(weights))
    sizes = np.empty(len(weights), dtype=np.intp)
    fitted = np.empty(len(weights))
    for j in range(len(weights)):
        fitted[j] = rates[j] * weights[j]
    blocks = _pooled(fitted, weights, fitted, mass, sizes)  # the sums of blocks overwrite what is in them
    stop, highest = 0, -math.inf
    for k in range(blocks):
        rate = fitted[k] / mass[k] if sizes[k] > 1 else rates[stop]  # alone, it keeps its last digit
        highest = max(highest, rate)  # ratios may round across each other
        fitted[k] = highest
        stop += sizes[k]
    for k in range(blocks - 1, -1, -1):  # from behind: no block begins before its number
        start = stop - sizes[k]
        rate = fitted[k]
        fitted[start:stop] = rate
        stop = start
    return fitted


@compiled
def pooled_scores(outcomes: Array, weights: Array, log: bool, clip: float) -> Array:
    """Return the least Brier score (log loss if `log`) of any non-decreasing rates, for every row.

    Every row has outcomes (weight of y per level); one row of weights serves all of them. Levels without
    weight are passed over, and log losses take rates within [clip, 1 - clip].
    """
    scores = np.empty(len(outcomes))
    mass = np.empty(outcomes.shape[1])
    ones = np.empty(outcomes.shape[1])
    sizes = np.empty(outcomes.shape[1], dtype=np.intp)
    for row in range(len(outcomes)):
        blocks = _pooled(outcomes[row], weights[min(row, len(weights) - 1)], ones, mass, sizes)
        score = 0.0
        for k in range(blocks):
            rate = min(max(ones[k] / mass[k], 0.0), 1.0)
            if log:
                rate = min(max(rate, clip), 1.0 - clip)
                score -= ones[k] * math.log(rate) + (mass[k] - ones[k]) * math.log1p(-rate)
            else:
                miss = 1.0 - rate  # squares as products: machine code and Python round these alike
                score += ones[k] * (miss * miss) + (mass[k] - ones[k]) * (rate * rate)
        scores[row] = score
    return scores


def _pooled(outcomes: Array, weights: Array, ones: Array, mass: Array, sizes: npt.NDArray[np.intp]) -> int:
    """Write sums and size of each block of equal rates; return how many blocks there are.

    `ones` may be `outcomes`: when a block is written, all levels up to its number have been read.
    """
    blocks = 0
    for j in range(len(weights)):
        if weights[j] <= 0.0:
            continue
        event, weight, size = outcomes[j], weights[j], 1
        while blocks > 0 and ones[blocks - 1] * weight >= event * mass[blocks - 1]:
            blocks -= 1
            event += ones[blocks]
            weight += mass[blocks]
            size += sizes[blocks]
        ones[blocks] = event
        mass[blocks] = weight
        sizes[blocks] = size
        blocks += 1
    return blocks
