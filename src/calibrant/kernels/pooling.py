"""Isotonic fits of many outcomes at once, for what they score: pool adjacent violators, row by row."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Array = npt.NDArray[np.float64]


@compiled
def pooled_scores(outcomes: Array, weights: Array, log: bool, clip: float) -> Array:
    """Return the least Brier score (log loss if `log`) of any non-decreasing rates, for every row.

    Every row has outcomes (weight of y per level); one row of weights serves all of them. Levels without
    weight are passed over, and log losses take rates within [clip, 1 - clip].
    """
    scores = np.empty(len(outcomes))
    mass = np.empty(outcomes.shape[1])
    ones = np.empty(outcomes.shape[1])
    for row in range(len(outcomes)):
        blocks = _pooled(outcomes[row], weights[min(row, len(weights) - 1)], ones, mass)
        score = 0.0
        for k in range(blocks):
            rate = min(max(ones[k] / mass[k], 0.0), 1.0)
            if log:
                rate = min(max(rate, clip), 1.0 - clip)
                score -= ones[k] * math.log(rate) + (mass[k] - ones[k]) * math.log1p(-rate)
            else:
                score += ones[k] * (1.0 - rate) ** 2 + (mass[k] - ones[k]) * rate**2
        scores[row] = score
    return scores


def _pooled(outcomes: Array, weights: Array, ones: Array, mass: Array) -> int:
    """Write the sums of each block of equal rates to `ones` and `mass`; return how many blocks there are."""
    blocks = 0
    for j in range(len(weights)):
        if weights[j] <= 0.0:
            continue
        event, weight = outcomes[j], weights[j]
        while blocks > 0 and ones[blocks - 1] * weight >= event * mass[blocks - 1]:
            blocks -= 1
            event += ones[blocks]
            weight += mass[blocks]
        ones[blocks] = event
        mass[blocks] = weight
        blocks += 1
    return blocks
