"""Isotonic values of one more record, for every place where it may fall, in linear time.

With C and Z the cumulative weights and successes, a record of weight 1 and label y that falls between level k
and level k + 1 gets max over i <= k of min over j >= k of (Z_j - Z_i + y) / (C_j - C_i + 1). Both optima lie
on lower convex hulls: of the points up to k and of those from k on. The value does not decrease in k, so
both points of contact only ever move to the right.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@compiled
def values_of_one_more(weights: Floats, ones: Floats, label: float) -> Floats:
    """Return the isotonic value of a record of `label` in each gap before, between and after the levels.

    `weights` and `ones` are cumulative, from 0.
    """
    following = _next_on_hull(weights, ones)
    points = len(weights)
    hull = np.empty(points, dtype=np.int64)
    result = np.empty(points)
    height, contact, right = 0, 0, 0
    for k in range(points):
        while height >= 2 and _bends_up(weights, ones, hull[height - 2], hull[height - 1], k):
            height -= 1
        hull[height] = k
        height += 1
        contact, right = min(contact, height - 1), max(right, k)
        while True:
            left = hull[contact]
            rise = ones[right] - ones[left] + label
            run = weights[right] - weights[left] + 1.0
            if following[right] >= 0 and _flatter(weights, ones, right, following[right], rise, run):
                right = following[right]  # first the minimum: only then is the value a lower bound
            elif contact < height - 1 and _flatter(weights, ones, left, hull[contact + 1], rise, run):
                contact += 1
            else:
                break
        result[k] = rise / run
    return result


@compiled
def _next_on_hull(weights: Floats, ones: Floats) -> Ints:
    """Return the next vertex, after each point, of the lower hull from there on; -1 for the last."""
    points = len(weights)
    following = np.full(points, -1, dtype=np.int64)
    for i in range(points - 2, -1, -1):
        j = i + 1
        while following[j] >= 0 and _bends_up(weights, ones, i, j, following[j]):
            j = following[j]
        following[i] = j
    return following


@compiled
def _bends_up(weights: Floats, ones: Floats, a: int, b: int, c: int) -> bool:
    """Return whether b lies on or above the line from a to c, so that a lower hull does without it."""
    left = (ones[b] - ones[a]) * (weights[c] - weights[a])
    return bool(left >= (ones[c] - ones[a]) * (weights[b] - weights[a]))


@compiled
def _flatter(weights: Floats, ones: Floats, a: int, b: int, rise: float, run: float) -> bool:
    """Return whether the line from a to b is flatter than rise / run."""
    return bool((ones[b] - ones[a]) * run < rise * (weights[b] - weights[a]))
