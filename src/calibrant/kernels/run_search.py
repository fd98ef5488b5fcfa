"""The quadratic searches for the cheapest runs of levels, as loops: which boundary each run starts from.

They choose what best_runs (kernels/partitions) chooses with the same prices, without storing any of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

SLACK = 1e-12  # more than the prices, differences of running sums of at most 1, can be rounded


@compiled
def hull_runs(level: Floats, weight: Floats, left: Floats, right: Floats) -> Ints:
    """Return the best previous boundary of each, where a run costs |residual| + weight * hull.

    At each boundary: the curve, the weight before it, the value after it and the value before it.
    """
    best = np.empty(len(level))
    previous = np.empty(len(level), dtype=np.intp)
    best[0], previous[0] = 0.0, 0
    for k in range(1, len(level)):
        least = np.inf
        previous[k] = 0
        for i in range(k):
            total = best[i] + (abs(level[k] - level[i]) + (right[k] - left[i]) * (weight[k] - weight[i]))
            if total < least:
                least = total
                previous[k] = i
        best[k] = least
    return previous


@compiled
def mean_runs(values: Floats, weight: Floats, outcome: Floats, moment: Floats, boundaries: Ints) -> Ints:
    """Return the best previous boundary of each, where a run costs sum w |v - mean outcome|.

    `weight`, `outcome` and `moment` are running sums over all levels. No run costs less than its residual
    (Jensen), so most runs need not be priced.
    """
    best = np.empty(len(boundaries))
    previous = np.empty(len(boundaries), dtype=np.intp)
    best[0], previous[0] = 0.0, 0
    for k in range(1, len(boundaries)):
        stop = boundaries[k]
        previous[k] = 0
        least = np.inf
        for i in range(k - 1, -1, -1):
            start = boundaries[i]
            residual = (outcome[stop] - outcome[start]) - (moment[stop] - moment[start])
            if best[i] > least or best[i] + abs(residual) > least + SLACK:
                continue
            total = best[i] + _run_cost(values, weight, outcome, moment, start, stop)
            if total <= least:  # of equal ones the first, though the last is seen first
                least = total
                previous[k] = i
        best[k] = least
    return previous


def _run_cost(
    values: Floats, weight: Floats, outcome: Floats, moment: Floats, start: int, stop: int
) -> float:
    mass = weight[stop] - weight[start]
    mean = (outcome[stop] - outcome[start]) / (mass if mass > 0.0 else 1.0)
    mean = min(max(mean, 0.0), 1.0)
    low, high = start, stop
    while low < high:  # the first level of the run that is not below the mean
        middle = (low + high) >> 1
        if values[middle] < mean:
            low = middle + 1
        else:
            high = middle
    below = mean * (weight[low] - weight[start]) - (moment[low] - moment[start])
    above = (moment[stop] - moment[low]) - mean * (weight[stop] - weight[low])
    cost: float = max(below + above, 0.0)
    return cost


@compiled
def level_boundaries(curve: Floats, edges: Ints) -> Ints:
    """Return from each block between `edges` the boundary where the curve is nearest to its level before."""
    chosen = np.empty(len(edges) - 1, dtype=np.intp)
    level = 0.0
    for k in range(len(edges) - 1):
        low, high = np.inf, -np.inf
        for j in range(edges[k], edges[k + 1]):
            low, high = min(low, curve[j]), max(high, curve[j])
        level = min(max(level, low), high)
        chosen[k] = 0
        nearest = np.inf
        for j in range(edges[k], edges[k + 1]):
            if abs(curve[j] - level) < nearest:
                nearest = abs(curve[j] - level)
                chosen[k] = j
    return chosen
