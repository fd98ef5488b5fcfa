"""Cheapest ways to cut or group levels: each group moves to its mean outcome, which makes it calibrated.

`values` ascend (ties allowed). Boundary b lies before level b, so a run from boundary i to j holds levels
i .. j-1; its residual is C_j - C_i of the curve of cumulative residuals, its hull v_{j-1} - v_i.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.parallel import chunked_sum, cumulative

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class LevelMasses(NamedTuple):
    """Distinct predictions or points, ascending, with their weight and their weight of outcome 1."""

    values: Floats
    weights: Floats
    outcomes: Floats

    @property
    def rates(self) -> Floats:
        return np.clip(self.outcomes / self.weights, 0.0, 1.0)

    def of_outcomes(self, part: slice = slice(None)) -> tuple[Floats, Floats]:
        """Return the mass of outcome 0 and of outcome 1."""
        ones = self.outcomes[part]
        return np.maximum(self.weights[part] - ones, 0.0), ones


MAX_PLAIN_BOUNDARIES = 100  # up to which a search in Python takes a few milliseconds
SLACK = 1e-12  # more than the prices, differences of running sums of at most 1, can be rounded


@compiled
def hull_runs(level: Floats, weight: Floats, left: Floats, right: Floats) -> Ints:
    """Return the best previous boundary of each, where a run costs |residual| + weight * hull."""
    # at each boundary: the curve, the weight before it, the value after it and the value before it
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
    """Return the best previous boundary of each, where a run costs sum w |v - mean outcome|."""
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
                continue  # no run costs less than its residual (Jensen)
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
    low = start + np.searchsorted(values[start:stop], mean)
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
        block = curve[edges[k] : edges[k + 1]]
        level = min(max(level, block.min()), block.max())
        chosen[k] = edges[k] + np.abs(block - level).argmin()
    return chosen


def first_of_runs(previous: Ints) -> Ints:
    cuts = [len(previous) - 1]
    while cuts[-1] > 0:
        cuts.append(int(previous[cuts[-1]]))
    return np.array(cuts[:0:-1], dtype=np.intp)


def contiguous_groups(levels: LevelMasses, boundaries: Ints) -> Ints:
    """Return the cheapest grouping into runs of neighboring levels, cut at `boundaries` only."""
    if len(boundaries) > MAX_PLAIN_BOUNDARIES:
        mean_runs.compile_now()
    # Differences of running sums lose runs of less than 1e-16 of the weight, which any mean serves: price the
    # runs that they choose level by level
    values, weights, outcomes = levels
    sums = cumulative(weights), cumulative(outcomes), cumulative(weights * values)
    starts = boundaries[first_of_runs(mean_runs(values, *sums, boundaries))]
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))


def grouping_cost(levels: LevelMasses, group: Ints, alpha: float = 1.0) -> float:
    """Price a grouping: the mean distance^alpha from each level to the mean outcome of its group."""
    values, weights, outcomes = levels
    mass = np.bincount(group, weights)
    mean = np.bincount(group, outcomes) / np.where(mass > 0, mass, 1.0)  # some numbers may have no group

    def moves(part: slice) -> Floats:
        away = np.abs(values[part] - mean[group[part]])
        return np.asarray(weights[part] * (away if alpha == 1 else away**alpha))

    return chunked_sum(moves, len(values))


def group_costs(member: npt.NDArray[Any], levels: LevelMasses, alpha: float = 1.0) -> Floats:
    """Price many groups: each row of `member` says which levels belong to one."""
    values, weights, outcomes = levels
    mass = member @ weights
    mean = np.divide(member @ outcomes, mass, out=np.zeros(len(member)), where=mass > 0)
    return np.asarray((member * weights * np.abs(values - mean[:, None]) ** alpha).sum(axis=1))


def best_grouping(levels: LevelMasses, alpha: float = 1.0) -> tuple[float, Ints]:
    """Return the cheapest grouping of any shape, by dynamic programming over all 3^m (set, subset) pairs."""
    count = len(levels.values)
    member = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(float)
    price = group_costs(member, levels, alpha)
    # With an axis of length 2 per item, the subsets that contain a group, and their rests, are plain slices
    best = np.where(np.arange(2**count) == 0, 0.0, np.inf)
    covers, prices = best.reshape((2,) * count), price.reshape((2,) * count)
    for first in range(count - 1, -1, -1):  # sets whose leftmost item is `first`, from the small to the large
        for rest in product((0, 1), repeat=count - 1 - first):
            before = (0,) * first
            whole = (*before, 1, *(1 if r else slice(None) for r in rest))
            remainder = (*before, 0, *(0 if r else slice(None) for r in rest))
            covers[whole] = np.minimum(covers[whole], prices[(*before, 1, *rest)] + covers[remainder])
    group, left, label = np.zeros(count, dtype=np.intp), 2**count - 1, 0
    while left:
        parts = np.flatnonzero((np.arange(2**count) & ~left) == 0)[1:]
        part = int(parts[np.argmin(price[parts] + best[left ^ parts])])
        group[member[part] > 0] = label
        left, label = left ^ part, label + 1
    return float(best[-1]), group


BATCH = 16
ROUNDING = 1e-16  # smaller gains are rounding errors of sums of residuals


def spread_boundaries(curve: Floats, limit: int) -> Ints:
    """At most `limit` boundaries, first and last included, at which the curve moves as little as possible."""
    count = len(curve)
    if count <= limit:
        return np.arange(count)
    # one from each of equal blocks, near the level of the block before, so that residuals between are small
    edges = np.linspace(1, count - 1, limit - 1).astype(np.intp)
    return np.concatenate([[0], level_boundaries(curve, edges), [count - 1]])


def least_average_width(
    values: Floats, weights: Floats, curve: Floats, boundaries: Ints
) -> tuple[float, Ints]:
    """Return the least sum over bins of |residual| + weight * hull (Definition 6.1), and where they start."""
    weight = cumulative(weights)
    if len(boundaries) > MAX_PLAIN_BOUNDARIES:
        hull_runs.compile_now()
    right = values[boundaries - 1]  # unused at the first boundary
    left = values[np.minimum(boundaries, len(values) - 1)]  # and at the last
    starts = boundaries[first_of_runs(hull_runs(curve[boundaries], weight[boundaries], left, right))]
    stops = np.append(starts[1:], boundaries[-1])
    hulls = (values[stops - 1] - values[starts]) * (weight[stops] - weight[starts])
    cost = np.abs(curve[stops] - curve[starts]) + hulls
    return float(np.cumsum(cost)[-1]), starts  # added in the order of the search


def least_largest_width(values: Floats, curve: Floats, boundaries: Ints) -> tuple[float, float]:
    """Minimize sum over bins of |residual| + the largest hull, by branch and bound on that hull."""
    # The least binned error e(w) with hulls of at most w falls as w grows: between hulls a and b of the list
    # nothing is below e(b) plus hull a + 1. Ranges that cannot beat the best are dropped, the others halved;
    # hulls are numbers of one list, made by one subtraction, so that the search ends.
    # first value after each boundary but the last, last value before each but the first, and the curve
    bins = (values[boundaries[:-1]], values[boundaries[1:] - 1], curve[boundaries])
    hulls = np.unique((bins[1][None, :] - bins[0][:, None])[np.triu_indices(len(bins[0]))])
    error, used = _binned_errors(bins, hulls[[0, -1]])
    best = min((float(e + w), float(w)) for e, w in zip(error, used, strict=True))
    ranges = [(-1, int(np.searchsorted(hulls, used[1])), float(error[1]))]  # a, b and e(b)
    while ranges := [r for r in ranges if r[0] + 1 < r[1] and r[2] + hulls[r[0] + 1] < best[0] - ROUNDING]:
        ranges.sort(key=lambda r: r[2] + hulls[r[0] + 1])
        batch, ranges = ranges[:BATCH], ranges[BATCH:]
        middles = np.array([(a + b) // 2 for a, b, _ in batch])
        error, used = _binned_errors(bins, hulls[middles])
        reached = np.searchsorted(hulls, np.minimum(used, hulls[middles]))
        for (a, b, below), middle, k, e, w in zip(batch, middles, reached, error, used, strict=True):
            best = min(best, (float(e + w), float(w)))
            ranges += [(a, int(k), float(e)), (int(middle), b, below)]
    return best


def _binned_errors(bins: tuple[Floats, Floats, Floats], widths: Floats) -> tuple[Floats, Floats]:
    """Least binned error with hulls of at most each of `widths` (inf: no such bins), and the largest hull."""
    left, right, level = bins
    count = len(level)
    best = np.zeros((len(widths), count))
    used = np.zeros((len(widths), count))
    rows = np.arange(len(widths))
    for k in range(1, count):
        hull = right[k - 1] - left[:k]
        first = min(int(np.searchsorted(-hull, -widths.max())), k - 1)  # hulls shrink from left to right
        hull = hull[first:]
        total = best[:, first:k] + np.abs(level[k] - level[first:k])
        total[hull > widths[:, None]] = np.inf
        at = total.argmin(axis=1)
        best[:, k] = total[rows, at]
        used[:, k] = np.maximum(used[rows, first + at], hull[at])
    return best[:, -1], used[:, -1]
