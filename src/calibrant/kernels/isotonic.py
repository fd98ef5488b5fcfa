"""Isotonic fits: of many outcomes at once, with a limited slope, and with one more record.

Limited slope, by the slope trick: let F_i(t) be the least cost of the first i levels if the fit ends at
g_i = t. Half its derivative is continuous, increasing and linear between breakpoints, with its zero at m_i.
The next level, whose fit may be larger by 0 to d, inserts a flat piece of length d at the zero; adding
w (t - r) then moves the zero to one side. Breakpoints left of the zero lie on one stack, those right of it on
another, which is shifted lazily; walking to the new zero moves breakpoints from one stack to the other.

One more record, in linear time: with C and Z the cumulative weights and successes, a record of weight 1 and
label y between levels k and k + 1 gets max over i <= k of min over j >= k of
(Z_j - Z_i + y) / (C_j - C_i + 1). Both optima lie on lower convex hulls, and move to the right as k grows.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled

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


@compiled
def bounded_slope_rates(values: Array, rates: Array, weights: Array, slope: float) -> Array:
    """Return g with least sum w (g - r)^2 subject to 0 <= g_{i+1} - g_i <= slope (v_{i+1} - v_i).

    Exact up to rounding. A walk passes n^(1/3) breakpoints on average on random outcomes, and at most of the
    order of sqrt(n), on outcomes that alternate between 0 and 1.
    """
    count = len(values)
    left_at, left_change = np.empty(2 * count), np.empty(2 * count)
    right_at, right_change = np.empty(2 * count), np.empty(2 * count)
    left, right, shift = 0, 0, 0.0
    zeros = np.empty(count)
    zero, steep = rates[0], weights[0]
    zeros[0] = zero
    for i in range(1, count):
        limit = slope * (values[i] - values[i - 1])
        shift += limit
        left_at[left], left_change[left] = zero, steep
        right_at[right], right_change[right] = zero + limit - shift, steep
        left, right = left + 1, right + 1
        weight, target = weights[i], rates[i]
        if target < zero:
            zero, steep, left, right = _walked(
                left_at, left_change, left, 0.0, right_at, right_change, right, shift,
                weight * (zero - target), zero, weight, -1.0,
            )  # fmt: skip
        elif target > zero + limit:
            place = zero + limit
            zero, steep, right, left = _walked(
                right_at, right_change, right, shift, left_at, left_change, left, 0.0,
                weight * (target - place), place, weight, 1.0,
            )  # fmt: skip
        else:
            zero, steep = target, weight
        zeros[i] = zero
    return _read_back(values, zeros, slope)


@compiled
def _walked(
    near_at: Array, near_change: Array, near: int, near_shift: float,
    far_at: Array, far_change: Array, far: int, far_shift: float,
    need: float, place: float, weight: float, toward: float,
) -> tuple[float, float, int, int]:  # fmt: skip
    """Walk from `place`, where half the derivative is `need` off zero, to its zero.

    Return the zero, the slope there, and the heights of the stack walked into and of the one left behind.
    """
    steep = weight
    while near > 0:
        stop = near_at[near - 1] + near_shift
        gap = toward * (stop - place)
        if steep * gap >= need:
            break
        if gap > 0.0:
            need -= steep * gap
            place = stop
        near -= 1
        far_at[far], far_change[far] = place - far_shift, -near_change[near]
        far += 1
        steep = max(steep + near_change[near], weight)  # never less than the weight, but for rounding
    return place + toward * need / steep, steep, near, far


@compiled
def _read_back(values: Array, zeros: Array, slope: float) -> Array:
    """Return the fit from the best last value backwards: each as near to its own zero as the next allows."""
    fit = zeros.copy()
    for i in range(len(values) - 2, -1, -1):
        limit = slope * (values[i + 1] - values[i])
        fit[i] = min(max(zeros[i], fit[i + 1] - limit), fit[i + 1])
    return fit


@compiled
def values_of_one_more(weights: Array, ones: Array, label: float) -> Array:
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
def _next_on_hull(weights: Array, ones: Array) -> npt.NDArray[np.int64]:
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
def _bends_up(weights: Array, ones: Array, a: int, b: int, c: int) -> bool:
    """Return whether b lies on or above the line from a to c, so that a lower hull does without it."""
    left = (ones[b] - ones[a]) * (weights[c] - weights[a])
    return bool(left >= (ones[c] - ones[a]) * (weights[b] - weights[a]))


@compiled
def _flatter(weights: Array, ones: Array, a: int, b: int, rise: float, run: float) -> bool:
    return bool((ones[b] - ones[a]) * run < rise * (weights[b] - weights[a]))
