"""Fits: isotonic ones, Cox's intercept and slope of many outcomes at once, and walks down trees."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Sums = tuple[float, float, float, float, float, float]

STEPS = 200
POLISHING = 1e-4  # steps shorter than this are judged by the gradient alone, which has twice the digits


@compiled
def isotonic_rates(rates: Array, weights: Array) -> Array:
    """Return the non-decreasing rates closest to `rates` in the sum of squares by (positive) weights."""
    # one arithmetic at every length: a rate that equals a decision threshold must not depend on what has
    # been loaded into the process
    mass = np.empty(len(weights))
    sizes = np.empty(len(weights), dtype=np.intp)
    fitted = rates * weights
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
    """Return the least Brier score (log loss if `log`) of any non-decreasing rates, for every row."""
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
    """Write sums and size of each block of equal rates; return how many blocks there are."""
    # `ones` may be `outcomes`: when a block is written, all levels up to its number have been read
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
    """Return g with least sum w (g - r)^2 subject to 0 <= g_{i+1} - g_i <= slope (v_{i+1} - v_i)."""
    # Slope trick: let F_i(t) be the least cost of the first i levels if the fit ends at g_i = t. Half its
    # derivative is continuous, increasing and linear between breakpoints, with its zero at m_i. The next
    # level, whose fit may be larger by 0 to d, inserts a flat piece of length d at the zero; adding w (t - r)
    # then moves the zero to one side. Breakpoints left of the zero lie on one stack, those right of it on
    # another, shifted lazily; a walk to the new zero moves n^(1/3) of them on random outcomes, at most of the
    # order of sqrt(n)
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
    # from the best last value backwards: each as near to its own zero as the next allows
    for i in range(count - 2, -1, -1):
        limit = slope * (values[i + 1] - values[i])
        zeros[i] = min(max(zeros[i], zeros[i + 1] - limit), zeros[i + 1])
    return zeros


def _walked(
    near_at: Array, near_change: Array, near: int, near_shift: float,
    far_at: Array, far_change: Array, far: int, far_shift: float,
    need: float, place: float, weight: float, toward: float,
) -> tuple[float, float, int, int]:  # fmt: skip
    """Walk from `place`, where half the derivative is `need` off zero: the zero, slope and both heights."""
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
def values_of_one_more(weights: Array, ones: Array, label: float) -> Array:
    """Return the isotonic value of a record of `label` in each gap of the levels; sums are cumulative."""
    # A record between levels k and k + 1 gets max over i <= k of min over j >= k of (Z_j - Z_i + y) /
    # (C_j - C_i + 1). Both optima lie on lower convex hulls, and move to the right as k grows
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


def _bends_up(weights: Array, ones: Array, a: int, b: int, c: int) -> bool:
    """Return whether b lies on or above the line from a to c, so that a lower hull does without it."""
    left = (ones[b] - ones[a]) * (weights[c] - weights[a])
    return bool(left >= (ones[c] - ones[a]) * (weights[b] - weights[a]))


def _flatter(weights: Array, ones: Array, a: int, b: int, rise: float, run: float) -> bool:
    return bool((ones[b] - ones[a]) * run < rise * (weights[b] - weights[a]))


def logistic_fit(x: Array, ones: Array, mass: Array, start: Array) -> Array:
    return np.asarray(_fitted(ones[np.newaxis], mass[np.newaxis], x, start)[0])


def logistic_fits(outcomes: Array, weights: Array, x: Array) -> Array:
    """Return intercept and slope of each row; infinity twice where the likelihood has no maximum."""
    _fits.prepare(outcomes.size)
    mass = np.sum(weights, axis=0) * (len(outcomes) / len(weights))
    start = logistic_fit(x, np.sum(outcomes, axis=0), mass, np.zeros(2))
    return _fitted(outcomes, weights, x, np.zeros(2) if np.isinf(start[1]) else start)


def _fitted(ones: Array, mass: Array, x: Array, start: Array) -> Array:
    if _fits.worth_compiling(ones.size):
        _fits.compile_now()
        return _fits(ones, mass, x, float(start[0]), float(start[1]))
    # the same arithmetic to the last digit; lists are quicker for Python
    return _fits.plain(ones.tolist(), mass.tolist(), x.tolist(), float(start[0]), float(start[1]))


@compiled
def _fits(outcomes: Array, weights: Array, x: Array, intercept: float, slope: float) -> Array:
    fits = np.empty((len(outcomes), 2))
    for row in range(len(outcomes)):
        mass = weights[min(row, len(weights) - 1)]
        fits[row, 0], fits[row, 1] = np.inf, np.inf
        if _overlap(outcomes[row], mass, x):
            fits[row, 0], fits[row, 1] = _newton(outcomes[row], mass, x, intercept, slope)
    return fits


def _overlap(ones: Array, mass: Array, x: Array) -> bool:
    """Return whether no threshold splits the outcomes: then intercept and slope are finite."""
    low_one, high_one = np.inf, -np.inf
    low_zero, high_zero = np.inf, -np.inf
    for j in range(len(x)):
        if ones[j] > 0.0:
            low_one, high_one = min(low_one, x[j]), max(high_one, x[j])
        if mass[j] - ones[j] > 0.0:
            low_zero, high_zero = min(low_zero, x[j]), max(high_zero, x[j])
    return low_one < high_zero and high_one > low_zero


def _newton(ones: Array, mass: Array, x: Array, intercept: float, slope: float) -> tuple[float, float]:
    """Take Newton steps, halved until they help, from the better of the start given and the constant fit."""
    events, others = 0.0, 0.0
    for j in range(len(x)):
        events += ones[j]
        others += mass[j] - ones[j]
    sums = _derivatives(ones, mass, x, intercept, slope)
    constant = math.log(events / others)
    there = _derivatives(ones, mass, x, constant, 0.0)
    if not sums[0] < there[0]:
        intercept, slope, sums = constant, 0.0, there
    length = np.inf
    for _ in range(STEPS):
        rise, tilt = _solved(sums)
        size = max(abs(rise), abs(tilt))
        if size < POLISHING and not size < length / 2:
            break
        while True:
            there = _derivatives(ones, mass, x, intercept + rise, slope + tilt)
            # a quarter of the decrease that the slope promises: a smaller one may end on a plateau
            if size < POLISHING or not there[0] > sums[0] - (sums[1] * rise + sums[2] * tilt) / 4:
                break
            rise, tilt, size = rise / 2, tilt / 2, size / 2
        intercept, slope, sums, length = intercept + rise, slope + tilt, there, size
    return intercept, slope


def _derivatives(ones: Array, mass: Array, x: Array, intercept: float, slope: float) -> Sums:
    """Return the loss, the two slopes of the likelihood and its three curvatures, in one pass."""
    loss, first, second = 0.0, 0.0, 0.0
    least, mixed, most = 0.0, 0.0, 0.0
    for j in range(len(x)):
        eta = intercept + slope * x[j]
        small = math.exp(-abs(eta))
        rate = (1.0 if eta >= 0.0 else small) / (1.0 + small)
        surplus = ones[j] - mass[j] * rate
        spread = mass[j] * rate * (1.0 - rate)
        loss += mass[j] * (max(eta, 0.0) + math.log1p(small)) - ones[j] * eta
        first += surplus
        second += surplus * x[j]
        least += spread
        mixed += spread * x[j]
        most += spread * x[j] * x[j]
    return loss, first, second, least, mixed, most


def _solved(sums: Sums) -> tuple[float, float]:
    """Return the step to where the slopes would vanish; the shortest such step where many would do."""
    _, first, second, least, mixed, most = sums
    determinant = least * most - mixed * mixed
    trace = least + most
    if determinant > 1e-14 * trace * trace:
        inverse = 1.0 / determinant
        return (most * first - mixed * second) * inverse, (least * second - mixed * first) * inverse
    inverse = 1.0 / max(trace * trace, 1e-300)
    return (least * first + mixed * second) * inverse, (mixed * first + most * second) * inverse


@compiled
def forest_sums(
    rows: Array,
    nodes: Places,
    thresholds: Array,
    values: Array,
    bits: npt.NDArray[np.uint64],
    roots: Places,
    every: int,
    sums: Array,
) -> None:
    """Fill ``sums[i, s]`` with what the first ``(s + 1) * every`` trees add up to for record i."""
    # a row of `nodes` holds feature (-1 in a leaf), left and right child, whether missing goes left, and for
    # categories place and number of words of the bits of those that go left (no words: a number, which goes
    # left at most at the threshold)
    for i in range(len(rows)):
        total = 0.0
        for tree in range(len(roots)):
            node = roots[tree]
            while nodes[node, 0] >= 0:
                value = rows[i, nodes[node, 0]]
                words = nodes[node, 5]
                if np.isnan(value):
                    left = nodes[node, 3] == 1
                elif words == 0:
                    left = value <= thresholds[node]
                else:
                    code = int(value)
                    left = code < 64 * words
                    if left:
                        word = bits[nodes[node, 4] + code // 64]
                        left = (word >> np.uint64(code % 64)) & np.uint64(1) == np.uint64(1)
                node = nodes[node, 1] if left else nodes[node, 2]
            total += values[node]
            if (tree + 1) % every == 0:
                sums[i, (tree + 1) // every - 1] = total
