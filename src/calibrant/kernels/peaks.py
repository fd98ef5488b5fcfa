"""Peaks of the threshold-loss curve at the predictions, in two passes over long data."""

from __future__ import annotations

import numpy as np

from calibrant.kernels.compiled import compiled
from calibrant.results import Array


@compiled
def peaks(values: Array, rates: Array, weights: Array, outcomes: Array) -> Array:
    """Return h at each of the ascending `values`, where the level's own jump counts in full.

    A rate is ranked among the values through the bucket floor(x m), which is monotone in x, and a binary
    search inside it: random binary searches over all of a long array would mostly wait for memory.
    """
    m = len(values)
    first = np.full(m + 2, m, dtype=np.int64)  # first[b]: how many values lie in buckets before b
    bucket = 0
    for i in range(m):
        while bucket <= int(values[i] * m):
            first[bucket] = i
            bucket += 1
    gone_outcomes, gone_weights = np.zeros(m + 1), np.zeros(m + 1)
    for i in range(m):
        rate = rates[i]
        bucket = int(rate * m)
        low, high = first[bucket], first[bucket + 1]
        while low < high:
            middle = (low + high) // 2
            if values[middle] < rate:
                low = middle + 1
            else:
                high = middle
        gone_outcomes[low] += outcomes[i]
        gone_weights[low] += weights[i]
    out = np.empty(m)
    outcome, weight = 0.0, 0.0
    for j in range(m):
        outcome += outcomes[j] - gone_outcomes[j]
        weight += weights[j] - gone_weights[j]
        right = outcome - weight * values[j]
        out[j] = max(right + max(weights[j] * values[j] - outcomes[j], 0.0), 0.0)
    return out
