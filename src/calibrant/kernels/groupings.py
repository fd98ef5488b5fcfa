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
        total = 0.0
        for k in range(start, stop):
            total += abs(values[k] - mean) ** alpha
        return total
    low = start + np.searchsorted(values[start:stop], mean)
    left = mean * (low - start) - (running[low] - running[start])
    right = (running[stop] - running[low]) - mean * (stop - low)
    return max(left + right, 0.0)  # type: ignore[no-any-return]


@compiled
def local_search(
    values: Floats, weights: Floats, outcomes: Floats, group: Ints, alpha: float, kicks: Floats
) -> tuple[float, Ints]:
    """Return a grouping that no move and no swap improves, the best of one restart per row of `kicks`."""
    size = len(values)
    cost = np.zeros(size + 1)  # one number more than groups can be needed: it stays free
    current = group.copy()
    at = _descend(values, weights, outcomes, current, cost, alpha)
    best, found = at, current.copy()
    for k in range(len(kicks)):
        trial = current.copy()
        _kick(trial, kicks[k])
        reached = _descend(values, weights, outcomes, trial, cost, alpha)
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
    if coins[0] < 0.35:
        other = min(size - 1, max(0, first - 6 + int(coins[2] * 13)))
        merged, into = group[first], group[other]
        for k in range(size):
            if group[k] == merged:
                group[k] = into
    elif coins[0] < 0.7:
        dissolved = group[first]
        used = np.zeros(size + 1, dtype=np.bool_)
        for k in range(size):
            used[group[k]] = True
        free = 0
        for k in range(size):
            if group[k] == dissolved:
                while used[free]:
                    free += 1
                group[k] = free
                used[free] = True
    else:
        for k in range(2 + int(coins[1] * 3)):
            group[int(coins[2 + k] * size)] = group[int(coins[8 - k] * size)]


def _descend(
    values: Floats, weights: Floats, outcomes: Floats, group: Ints, cost: Floats, alpha: float
) -> float:
    """Move and swap levels while that helps; return the cost. `cost` is scratch, one entry per number."""
    size = len(values)
    for g in range(size + 1):
        cost[g] = _group_cost(values, weights, outcomes, group, g, -1, -1, alpha)
    improved = True
    while improved:
        improved = False
        for i in range(size):
            if _move(values, weights, outcomes, group, cost, i, alpha):
                improved = True
        if improved:
            continue
        for i in range(size):
            for j in range(i):
                a, b = group[i], group[j]
                if a == b:
                    continue
                one = _group_cost(values, weights, outcomes, group, a, i, j, alpha)
                if one >= cost[a] + cost[b]:
                    continue
                other = _group_cost(values, weights, outcomes, group, b, j, i, alpha)
                if one + other < cost[a] + cost[b] - ROUNDING:
                    group[i], group[j] = b, a
                    cost[a], cost[b] = one, other
                    improved = True
    return cost.sum()  # type: ignore[no-any-return]


def _move(
    values: Floats, weights: Floats, outcomes: Floats, group: Ints, cost: Floats, item: int, alpha: float
) -> bool:
    """Move a level to the group where it costs least, if that helps."""
    size = len(values)
    members = np.zeros(size + 1, dtype=np.intp)
    for k in range(size):
        members[group[k]] += 1
    home, tried_empty = group[item], False
    left = _group_cost(values, weights, outcomes, group, home, item, -1, alpha)
    gain, target, joined = ROUNDING, -1, 0.0
    for g in range(size + 1):
        if g == home or (members[g] == 0 and (tried_empty or members[home] == 1)):
            continue
        if members[g] == 0:
            tried_empty = True
        with_item = _group_cost(values, weights, outcomes, group, g, -1, item, alpha)
        saved = cost[home] + cost[g] - left - with_item
        if saved > gain:
            gain, target, joined = saved, g, with_item
    if target < 0:
        return False
    group[item], cost[home], cost[target] = target, left, joined
    return True


def _group_cost(
    values: Floats,
    weights: Floats,
    outcomes: Floats,
    group: Ints,
    g: int,
    without: int,
    plus: int,
    alpha: float,
) -> float:
    """Price group g without one level and with another (-1: none)."""
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
    threshold: float, improving: bool, found: Flags, nodes_per_cell: int,
) -> tuple[int, bool]:  # fmt: skip
    """List groups that cost at most their prices plus `threshold`; return how many, and if that is all."""
    # `improving` keeps in each cell only groups better than those before
    count, complete = 0, True
    for k in range(len(edges) - 1):
        slope, bound = _best_slope(edges[k], edges[k + 1], values, weights, rates, prices)
        if bound > threshold:
            continue
        count, done = _search_cell(
            edges[k], edges[k + 1], slope, values, weights, rates, prices,
            threshold, improving, found, count, nodes_per_cell,
        )  # fmt: skip
        complete = complete and done
        if count >= len(found):
            return count, False
    return count, complete


def _reduced(target: float, slope: float, value: float, weight: float, rate: float, price: float) -> float:
    """Return what a level adds to the reduced cost of a group with this mean; the slopes cancel over it."""
    return weight * abs(value - target) + slope * weight * (rate - target) - price


def _cell_bound(
    low: float, high: float, slope: float, values: Floats, weights: Floats, rates: Floats, prices: Floats
) -> float:
    """Return a lower bound on the reduced cost of all groups with a mean between `low` and `high`."""
    at_low, at_high = 0.0, 0.0
    for i in range(len(values)):
        at_low += min(0.0, _reduced(low, slope, values[i], weights[i], rates[i], prices[i]))
        at_high += min(0.0, _reduced(high, slope, values[i], weights[i], rates[i], prices[i]))
    return min(at_low, at_high)


def _best_slope(
    low: float, high: float, values: Floats, weights: Floats, rates: Floats, prices: Floats
) -> tuple[float, float]:
    """Return the slope with the largest bound for a cell, which is concave in it, and that bound."""
    left, right, ratio = -8.0, 8.0, 0.6180339887498949
    a, b = right - ratio * (right - left), left + ratio * (right - left)
    at_a = _cell_bound(low, high, a, values, weights, rates, prices)
    at_b = _cell_bound(low, high, b, values, weights, rates, prices)
    for _ in range(40):
        if at_a >= at_b:
            right, b, at_b = b, a, at_a
            a = right - ratio * (right - left)
            at_a = _cell_bound(low, high, a, values, weights, rates, prices)
        else:
            left, a, at_a = a, b, at_b
            b = left + ratio * (right - left)
            at_b = _cell_bound(low, high, b, values, weights, rates, prices)
    return (a, at_a) if at_a >= at_b else (b, at_b)


def _search_cell(
    low: float, high: float, slope: float, values: Floats, weights: Floats, rates: Floats, prices: Floats,
    threshold: float, improving: bool, found: Flags, count: int, max_nodes: int,
) -> tuple[int, bool]:  # fmt: skip
    """Add the cheap groups with a mean in one cell to `found`, by including and excluding level by level."""
    size = len(values)
    at_low, at_high, key = np.empty(size), np.empty(size), np.empty(size)
    for i in range(size):
        at_low[i] = _reduced(low, slope, values[i], weights[i], rates[i], prices[i])
        at_high[i] = _reduced(high, slope, values[i], weights[i], rates[i], prices[i])
        key[i] = -min(abs(at_low[i]), abs(at_high[i])) if at_low[i] * at_high[i] > 0.0 else 0.0
    order = np.argsort(key)
    reach_low, reach_high = np.zeros(size + 1), np.zeros(size + 1)  # of the mean, with the levels not tried
    bound_low, bound_high = np.zeros(size + 1), np.zeros(size + 1)
    mean_low, mean_high = np.zeros(size + 1), np.zeros(size + 1)
    for k in range(size - 1, -1, -1):
        i = order[k]
        reach_low[k] = reach_low[k + 1] + max(0.0, weights[i] * (rates[i] - low))
        reach_high[k] = reach_high[k + 1] + min(0.0, weights[i] * (rates[i] - high))
        bound_low[0] += min(0.0, at_low[i])
        bound_high[0] += min(0.0, at_high[i])
    inside, tried = np.zeros(size, dtype=np.bool_), np.zeros(size + 1, dtype=np.intp)
    k, nodes = 0, 0
    while k >= 0:
        if k == size:
            cost, mean = _reduced_cost(inside, values, weights, rates, prices)
            if cost <= threshold + 1e-15 and low - 1e-12 <= mean <= high + 1e-12:
                if count >= len(found):
                    return count, False
                found[count] = inside
                count += 1
                if improving:
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
        nodes += 1
        if nodes > max_nodes:
            return count, False
        new_low = bound_low[k] - min(0.0, at_low[i])
        new_high = bound_high[k] - min(0.0, at_high[i])
        sum_low, sum_high = mean_low[k], mean_high[k]
        if taken:
            new_low, new_high = new_low + at_low[i], new_high + at_high[i]
            sum_low += weights[i] * (rates[i] - low)
            sum_high += weights[i] * (rates[i] - high)
        out_of_reach = sum_low + reach_low[k + 1] < -ROUNDING or sum_high + reach_high[k + 1] > ROUNDING
        if min(new_low, new_high) > threshold + 1e-15 or out_of_reach:
            continue
        inside[i] = taken
        k += 1
        bound_low[k], bound_high[k], mean_low[k], mean_high[k] = new_low, new_high, sum_low, sum_high
        tried[k] = 0
    return count, True


def _reduced_cost(
    inside: Flags, values: Floats, weights: Floats, rates: Floats, prices: Floats
) -> tuple[float, float]:
    """Return the cost of a group minus its prices, and its mean; infinity for the empty group."""
    weight, outcome = 0.0, 0.0
    for i in range(len(values)):
        if inside[i]:
            weight += weights[i]
            outcome += weights[i] * rates[i]
    if weight <= 0.0:
        return np.inf, 0.0
    mean, cost = outcome / weight, 0.0
    for i in range(len(values)):
        if inside[i]:
            cost += weights[i] * abs(values[i] - mean) - prices[i]
    return cost, mean
