"""Cheapest groupings of levels: exact for 0/1 records, local search, and the search for cheap groups.

A group of levels moves to its mean outcome; it costs the sum of weight * |value - mean|^alpha. The theorems
and their proofs are on the page "Upper distance".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.kernels.partitions import Floats, Ints

Flags = npt.NDArray[np.bool_]
Levels = tuple[Floats, ...]  # values and weights; their outcomes, or rates and prices

ROUNDING = 1e-13


@compiled
def paired_runs(
    ones: Floats, zeros: Floats, weight: float, alpha: float, limit: float
) -> tuple[Floats, Ints]:
    """Return the least cost of the first i ones and j zeros, and the pair (i', j') each came from."""
    # Groupings that cost `limit` or more are not followed. No group costs less than its residual (Jensen), so
    # most groups need not be priced
    p, q = len(ones), len(zeros)
    best = np.full((p + 1, q + 1), np.inf)
    previous = np.zeros((p + 1, q + 1), dtype=np.intp)
    best[0, 0] = 0.0
    above, below = np.zeros(p + 1), np.zeros(q + 1)
    above[1:], below[1:] = np.cumsum(ones), np.cumsum(zeros)
    bias = p - above[p] - below[q]
    for i in range(p + 1):
        for j in range(0 if i > 0 else 1, q + 1):
            rest = weight * abs(bias - (i - above[i] - below[j]))  # what all later groups cost at least
            least = limit - rest if alpha == 1.0 else limit
            for i0 in range(i, -1, -1):
                for j0 in range(j - 1 if i0 == i else j, -1, -1):
                    before = best[i0, j0]
                    if before >= least:
                        continue
                    count = (i - i0) + (j - j0)
                    residual = abs((i - i0) - (above[i] - above[i0]) - (below[j] - below[j0]))
                    power = residual if alpha == 1.0 else count * (residual / count) ** alpha
                    if before + weight * power >= least:
                        continue
                    mean = (i - i0) / count
                    cost = _run_cost(ones, above, i0, i, mean, alpha)
                    cost = before + weight * (cost + _run_cost(zeros, below, j0, j, mean, alpha))
                    if cost < least:
                        least = cost
                        best[i, j] = cost
                        previous[i, j] = i0 * (q + 1) + j0
    return best, previous


def _run_cost(values: Floats, running: Floats, start: int, stop: int, mean: float, alpha: float) -> float:
    if alpha != 1.0:
        return (np.abs(values[start:stop] - mean) ** alpha).sum()  # type: ignore[no-any-return]
    low = start + np.searchsorted(values[start:stop], mean)
    left = mean * (low - start) - (running[low] - running[start])
    right = (running[stop] - running[low]) - mean * (stop - low)
    return max(left + right, 0.0)  # type: ignore[no-any-return]


@compiled
def local_search(
    values: Floats, weights: Floats, outcomes: Floats, group: Ints, alpha: float, kicks: Floats
) -> tuple[float, Ints]:
    """Return a grouping that no move and no swap improves, the best of one restart per row of `kicks`."""
    levels = values, weights, outcomes
    cost = np.zeros(len(values) + 1)  # one number more than groups can be needed: it stays free
    current = group.copy()
    at = _descend(levels, current, cost, alpha)
    best, found = at, current.copy()
    for k in range(len(kicks)):
        trial = current.copy()
        _kick(trial, kicks[k])
        reached = _descend(levels, trial, cost, alpha)
        if reached < at + 0.002 * best * kicks[k, 9]:
            current, at = trial, reached
        if reached < best - ROUNDING:
            best, found = reached, trial.copy()
        if k % 100 == 99:
            current, at = found.copy(), best
    return best, found


def _kick(group: Ints, coins: Floats) -> None:
    """Merge two groups, dissolve one, or move a few levels; `coins` are ten uniform numbers."""
    size = len(group)
    first = int(coins[1] * size)
    members = np.flatnonzero(group == group[first])
    if coins[0] < 0.35:
        other = min(size - 1, max(0, first - 6 + int(coins[2] * 13)))
        group[members] = group[other]
    elif coins[0] < 0.7:
        unused = np.ones(size + 1, dtype=np.bool_)
        unused[group] = False
        group[members] = np.flatnonzero(unused)[: len(members)]
    else:
        for k in range(2 + int(coins[1] * 3)):
            group[int(coins[2 + k] * size)] = group[int(coins[8 - k] * size)]


def _descend(levels: Levels, group: Ints, cost: Floats, alpha: float) -> float:
    """Move and swap levels while that helps; return the cost. `cost` is scratch, one entry per number."""
    size = len(group)
    for g in range(size + 1):
        cost[g] = _group_cost(levels, group, g, -1, -1, alpha)
    improved = True
    while improved:
        improved = False
        for i in range(size):
            if _move(levels, group, cost, i, alpha):
                improved = True
        if improved:
            continue
        for i in range(size):
            for j in range(i):
                a, b = group[i], group[j]
                if a == b:
                    continue
                one = _group_cost(levels, group, a, i, j, alpha)
                if one >= cost[a] + cost[b]:
                    continue
                other = _group_cost(levels, group, b, j, i, alpha)
                if one + other < cost[a] + cost[b] - ROUNDING:
                    group[i], group[j] = b, a
                    cost[a], cost[b] = one, other
                    improved = True
    return cost.sum()  # type: ignore[no-any-return]


def _move(levels: Levels, group: Ints, cost: Floats, item: int, alpha: float) -> bool:
    """Move a level to the group where it costs least, if that helps."""
    size = len(group)
    members = np.bincount(group, minlength=size + 1)
    home, tried_empty = group[item], False
    left = _group_cost(levels, group, home, item, -1, alpha)
    gain, target, joined = ROUNDING, -1, 0.0
    for g in range(size + 1):
        if g == home or (members[g] == 0 and (tried_empty or members[home] == 1)):
            continue
        if members[g] == 0:
            tried_empty = True
        with_item = _group_cost(levels, group, g, -1, item, alpha)
        saved = cost[home] + cost[g] - left - with_item
        if saved > gain:
            gain, target, joined = saved, g, with_item
    if target < 0:
        return False
    group[item], cost[home], cost[target] = target, left, joined
    return True


def _group_cost(levels: Levels, group: Ints, g: int, without: int, plus: int, alpha: float) -> float:
    """Price group g without one level and with another (-1: none)."""
    values, weights, outcomes = levels
    weight, outcome = 0.0, 0.0
    for k in range(len(values)):
        if (group[k] == g and k != without) or k == plus:
            weight += weights[k]
            outcome += outcomes[k]
    if weight <= 0.0:
        return 0.0
    mean, total = outcome / weight, 0.0
    for k in range(len(values)):
        if (group[k] == g and k != without) or k == plus:
            away = abs(values[k] - mean)
            total += weights[k] * (away if alpha == 1.0 else away**alpha)
    return total


@compiled
def cheap_groups(
    values: Floats, weights: Floats, rates: Floats, prices: Floats, edges: Floats,
    threshold: float, found: Flags, nodes_per_cell: int,
) -> tuple[int, bool]:  # fmt: skip
    """List groups that cost at most their prices plus `threshold`; return how many, and if that is all."""
    # below a threshold of 0 each cell keeps only groups better than those before
    count, complete = 0, True
    levels = values, weights, rates, prices
    for k in range(len(edges) - 1):
        slope, bound = _best_slope(edges[k], edges[k + 1], levels)
        if bound > threshold:
            continue
        cell = edges[k], edges[k + 1], slope
        count, done = _search_cell(cell, levels, threshold, found, count, nodes_per_cell)
        complete = complete and done
        if count >= len(found):
            return count, False
    return count, complete


def _reduced(target: float, slope: float, levels: Levels) -> Floats:
    """Return what levels add to the reduced cost of a group with this mean; the slopes cancel over it."""
    values, weights, rates, prices = levels
    return weights * np.abs(values - target) + slope * weights * (rates - target) - prices


def _cell_bound(low: float, high: float, slope: float, levels: Levels) -> float:
    """Return a lower bound on the reduced cost of all groups with a mean between `low` and `high`."""
    at_low = np.minimum(_reduced(low, slope, levels), 0.0).sum()
    return min(at_low, np.minimum(_reduced(high, slope, levels), 0.0).sum())  # type: ignore[no-any-return]


def _best_slope(low: float, high: float, levels: Levels) -> tuple[float, float]:
    """Return the slope with the largest bound for a cell, which is concave in it, and that bound."""
    left, right, ratio = -8.0, 8.0, 0.6180339887498949
    a, b = right - ratio * (right - left), left + ratio * (right - left)
    at_a, at_b = _cell_bound(low, high, a, levels), _cell_bound(low, high, b, levels)
    for _ in range(40):
        if at_a >= at_b:
            right, b, at_b = b, a, at_a
            a = right - ratio * (right - left)
            at_a = _cell_bound(low, high, a, levels)
        else:
            left, a, at_a = a, b, at_b
            b = left + ratio * (right - left)
            at_b = _cell_bound(low, high, b, levels)
    return (a, at_a) if at_a >= at_b else (b, at_b)


def _search_cell(
    cell: tuple[float, float, float], levels: Levels, threshold: float, found: Flags, count: int, nodes: int
) -> tuple[int, bool]:
    """Add the cheap groups with a mean in one cell to `found`, by including and excluding level by level."""
    low, high, slope = cell
    _, weights, rates, _ = levels
    size = len(weights)
    at_low, at_high = _reduced(low, slope, levels), _reduced(high, slope, levels)
    key = np.where(at_low * at_high > 0.0, -np.minimum(np.abs(at_low), np.abs(at_high)), 0.0)
    order = np.argsort(key)
    lean_low, lean_high = weights * (rates - low), weights * (rates - high)
    reach_low, reach_high = np.zeros(size + 1), np.zeros(size + 1)  # of the mean, with the levels not tried
    reach_low[:size] = np.cumsum(np.maximum(lean_low, 0.0)[order][::-1])[::-1]
    reach_high[:size] = np.cumsum(np.minimum(lean_high, 0.0)[order][::-1])[::-1]
    bound_low, bound_high = np.zeros(size + 1), np.zeros(size + 1)
    bound_low[0], bound_high[0] = np.minimum(at_low, 0.0).sum(), np.minimum(at_high, 0.0).sum()
    mean_low, mean_high = np.zeros(size + 1), np.zeros(size + 1)
    inside, tried = np.zeros(size, dtype=np.bool_), np.zeros(size + 1, dtype=np.intp)
    k = 0
    while k >= 0:
        if k == size:
            cost, mean = _reduced_cost(inside, levels)
            if cost <= threshold + 1e-15 and low - 1e-12 <= mean <= high + 1e-12:
                if count >= len(found):
                    return count, False
                found[count] = inside
                count += 1
                if threshold < 0.0:
                    threshold = min(threshold, cost - 1e-12)
            k -= 1
            continue
        i = order[k]
        if tried[k] == 2:
            tried[k] = 0
            inside[i] = False
            k -= 1
            continue
        natural = at_low[i] + at_high[i] < 0.0
        taken = natural if tried[k] == 0 else not natural
        tried[k] += 1
        nodes -= 1
        if nodes < 0:
            return count, False
        new_low = bound_low[k] - min(0.0, at_low[i])
        new_high = bound_high[k] - min(0.0, at_high[i])
        sum_low, sum_high = mean_low[k], mean_high[k]
        if taken:
            new_low, new_high = new_low + at_low[i], new_high + at_high[i]
            sum_low, sum_high = sum_low + lean_low[i], sum_high + lean_high[i]
        out_of_reach = sum_low + reach_low[k + 1] < -ROUNDING or sum_high + reach_high[k + 1] > ROUNDING
        if min(new_low, new_high) > threshold + 1e-15 or out_of_reach:
            continue
        inside[i] = taken
        k += 1
        bound_low[k], bound_high[k], mean_low[k], mean_high[k] = new_low, new_high, sum_low, sum_high
        tried[k] = 0
    return count, True


def _reduced_cost(inside: Flags, levels: Levels) -> tuple[float, float]:
    """Return the cost of a group minus its prices, and its mean; infinity for the empty group."""
    values, weights, rates, prices = levels
    weight = weights[inside].sum()
    if weight <= 0.0:
        return np.inf, 0.0
    mean = (weights * rates)[inside].sum() / weight
    return (weights * np.abs(values - mean) - prices)[inside].sum(), mean
