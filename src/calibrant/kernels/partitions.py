"""Cheapest ways to cut or group levels: dynamic programs, local search, and interval partitions.

A group of levels is sent to its mean outcome, at the cost sum w |v - mean|; every grouping is one way to be
calibrated, so its cost is an upper bound on the cheapest. `values` ascend (ties allowed), boundary b lies
before level b, so a run from boundary i to boundary j holds levels i .. j-1. `curve` holds the cumulative
residuals C_0 .. C_m: the bin from boundary i to j has the residual C_j - C_i and the hull v_{j-1} - v_i.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.parallel import chunked_sum, cumulative

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


class Runs(NamedTuple):
    cost: float
    starts: Ints


def best_runs(boundaries: Ints, run_cost: Callable[[Ints, int], Floats]) -> Runs:
    """Cut at some of the boundaries (first and last included) so that the runs cost least.

    `run_cost(starts, stop)` prices the runs from each of `starts` to `stop`. O(boundaries^2).
    """
    count = len(boundaries)
    best = np.zeros(count)
    previous = np.zeros(count, dtype=np.intp)
    for k in range(1, count):
        total = best[:k] + run_cost(boundaries[:k], int(boundaries[k]))
        previous[k] = total.argmin()
        best[k] = total[previous[k]]
    return Runs(float(best[-1]), boundaries[first_of_runs(previous)])


def first_of_runs(previous: Ints) -> Ints:
    cuts = [len(previous) - 1]
    while cuts[-1] > 0:
        cuts.append(int(previous[cuts[-1]]))
    return np.array(cuts[:0:-1], dtype=np.intp)


def contiguous_groups(values: Floats, weights: Floats, outcomes: Floats, boundaries: Ints) -> Runs:
    """Cheapest grouping into runs of neighboring levels, cut at `boundaries` only.

    Differences of running sums choose the runs; they lose runs of less than 1e-16 of the weight, which any
    mean in [0, 1] serves. The runs chosen are then priced level by level.
    """
    weight, outcome, moment = cumulative(weights), cumulative(outcomes), cumulative(weights * values)

    def run_cost(starts: Ints, stop: int) -> Floats:
        mass = weight[stop] - weight[starts]
        mean = np.clip((outcome[stop] - outcome[starts]) / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
        middle = np.clip(np.searchsorted(values, mean), starts, stop)
        below = mean * (weight[middle] - weight[starts]) - (moment[middle] - moment[starts])
        above = (moment[stop] - moment[middle]) - mean * (weight[stop] - weight[middle])
        cost: Floats = np.maximum(below + above, 0.0)
        return cost

    if mean_runs.worth_compiling(len(boundaries) ** 2 // 64):
        mean_runs.compile_now()
        starts = boundaries[first_of_runs(mean_runs(values, weight, outcome, moment, boundaries))]
    else:
        starts = best_runs(boundaries, run_cost).starts
    return Runs(grouping_cost(values, weights, outcomes, run_of_levels(starts, len(values))), starts)


def run_of_levels(starts: Ints, levels: int) -> Ints:
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=levels))


def cost_apart(values: Floats, weights: Floats, outcomes: Floats, alpha: float = 1.0) -> float:
    """Price the grouping in which every level is alone, as grouping_cost does."""
    return _mean_move(
        values, weights, lambda part: outcomes[part] / np.where(weights[part] > 0, weights[part], 1.0), alpha
    )


def grouping_cost(
    values: Floats, weights: Floats, outcomes: Floats, group: Ints, alpha: float = 1.0
) -> float:
    """Price a grouping: the mean distance^alpha from each level to the mean outcome of its group."""
    mass = np.bincount(group, weights)
    mean = np.bincount(group, outcomes) / np.where(mass > 0, mass, 1.0)  # some numbers may have no group
    return _mean_move(values, weights, lambda part: mean[group[part]], alpha)


def _mean_move(values: Floats, weights: Floats, means: Callable[[slice], Floats], alpha: float) -> float:
    """Return the sum of weight times |value - mean|^alpha, `means` of a part of the levels at a time."""

    def moves(part: slice) -> Floats:
        away = np.abs(values[part] - means(part))
        return np.asarray(weights[part] * (away if alpha == 1 else away**alpha))

    return chunked_sum(moves, len(values))


class Grouping(NamedTuple):
    cost: float
    group: Ints


def best_grouping(values: Floats, weights: Floats, outcomes: Floats, alpha: float = 1.0) -> Grouping:
    """Cheapest grouping of any shape, by dynamic programming over all 3^m (set, subset) pairs."""
    count = len(values)
    member = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(float)
    with np.errstate(invalid="ignore"):
        mean = (member @ outcomes) / (member @ weights)
    price = np.nan_to_num((member * weights * np.abs(values - mean[:, None]) ** alpha).sum(axis=1))
    best = _cheapest_covers(price, count)
    group, left = np.zeros(count, dtype=np.intp), 2**count - 1
    label = 0
    while left:
        parts = np.flatnonzero((np.arange(2**count) & ~left) == 0)[1:]
        part = int(parts[np.argmin(price[parts] + best[left ^ parts])])
        group[member[part] > 0] = label
        left, label = left ^ part, label + 1
    return Grouping(float(best[-1]), group)


def _cheapest_covers(price: Floats, count: int) -> Floats:
    """Cost of the best grouping of every subset, the subset written in binary.

    Seen as an array with one axis of length 2 per item, the subsets that contain a fixed group, and what is
    left of them without it, are plain slices.
    """
    best = np.where(np.arange(2**count) == 0, 0.0, np.inf).reshape((2,) * count)
    price = price.reshape((2,) * count)
    for first in range(count - 1, -1, -1):  # sets whose leftmost item is `first`, from the small to the large
        for rest in product((0, 1), repeat=count - 1 - first):
            before = (0,) * first
            whole = (*before, 1, *(1 if r else slice(None) for r in rest))
            remainder = (*before, 0, *(0 if r else slice(None) for r in rest))
            best[whole] = np.minimum(best[whole], price[(*before, 1, *rest)] + best[remainder])
    return best.ravel()


SWEEPS = 40
GAIN = 1e-14  # smaller gains are rounding


class _Groups:
    """Items in groups, numbered 0 to `capacity` - 1, the cost of each group, and its sums."""

    def __init__(self, values: Floats, weights: Floats, outcomes: Floats, group: Ints, alpha: float) -> None:
        self.values, self.weights, self.outcomes, self.alpha = values, weights, outcomes, alpha
        self.group = np.unique(group, return_inverse=True)[1].astype(np.intp)
        self.capacity = len(values) + 1  # one number is always free, for a group of its own
        self.refresh()

    def refresh(self) -> None:
        """Sum every group again, so that rounding errors do not accumulate."""
        self.weight = self._sums(self.weights)
        self.outcome = self._sums(self.outcomes)
        self.cost = self.costs(self.weight, self.outcome)

    def costs(self, weight: Floats, outcome: Floats) -> Floats:
        """Return the cost of each group if it had these sums, and so this mean, for its present members."""
        mean = np.divide(outcome, weight, out=np.zeros(self.capacity), where=weight > 0)
        moved = self.weights * np.abs(self.values - mean[self.group]) ** self.alpha
        return self._sums(moved)

    def _sums(self, terms: Floats) -> Floats:
        return np.bincount(self.group, terms, self.capacity).astype(np.float64, copy=False)

    def move_best(self, item: int) -> float:
        """Move an item to the group where it costs least, if that helps; return the gain."""
        home, w, a = self.group[item], self.weights[item], self.outcomes[item]
        weight, outcome = self.weight + w, self.outcome + a  # every group with the item added
        mean = np.clip(outcome / weight, 0.0, 1.0)
        joined = self.costs(weight, outcome) + w * np.abs(self.values[item] - mean) ** self.alpha - self.cost
        self.group[item] = self.capacity - 1  # out of its group, to see what is left
        rest_weight = float(self.weights @ (self.group == home))
        left = 0.0
        if rest_weight > 0:
            members = self.group == home
            rest = float(self.outcomes @ members) / rest_weight
            left = float((self.weights * np.abs(self.values - rest) ** self.alpha) @ members)
        freed = float(self.cost[home]) - left
        joined[home] = freed  # to stay costs what leaving would free
        best = int(np.argmin(joined))
        gain = freed - float(joined[best])
        self.group[item] = best if gain > GAIN else home
        if gain > GAIN:
            self.refresh_pair(int(home), best)
        return max(0.0, gain) if gain > GAIN else 0.0

    def refresh_pair(self, one: int, other: int) -> None:
        for number in (one, other):
            members = self.group == number
            self.weight[number] = float(self.weights @ members)
            self.outcome[number] = float(self.outcomes @ members)
            mean = self.outcome[number] / self.weight[number] if members.any() else 0.0
            moved = self.weights * np.abs(self.values - mean) ** self.alpha
            self.cost[number] = float(moved @ members)
        if self.group.max() == self.capacity - 1:  # keep the last number free
            self.group = np.unique(self.group, return_inverse=True)[1].astype(np.intp)
            self.refresh()

    def merge_best(self) -> float:
        """Merge the two groups whose union saves most, if any does; return the gain."""
        numbers = np.flatnonzero(self.weight > 0)
        best, pair = GAIN, None
        for k, one in enumerate(numbers[:-1]):
            others = numbers[k + 1 :]
            weight, outcome = self.weight.copy(), self.outcome.copy()
            weight[others] += self.weight[one]
            outcome[others] += self.outcome[one]
            mean = outcome[others] / weight[others]
            members = self.group == one
            moved = np.abs(self.values[members][:, None] - mean[None, :]) ** self.alpha
            union = self.costs(weight, outcome)[others] + self.weights[members] @ moved
            gains = self.cost[one] + self.cost[others] - union
            if gains.max() > best:
                best, pair = float(gains.max()), (one, others[int(np.argmax(gains))])
        if pair is None:
            return 0.0
        self.group[self.group == pair[1]] = pair[0]
        self.refresh()
        return best

    def split_best(self) -> float:
        """Cut one group in two at a prediction, where that saves most, if it does; return the gain."""
        best, chosen = GAIN, None
        for number in np.flatnonzero(np.bincount(self.group, minlength=self.capacity) > 1):
            members = np.flatnonzero(self.group == number)
            for cut in range(1, len(members)):
                parts = (members[:cut], members[cut:])
                gain = float(self.cost[number]) - sum(self._alone(part) for part in parts)
                if gain > best:
                    best, chosen = gain, parts[1]
        if chosen is None:
            return 0.0
        self.group[chosen] = self.group.max() + 1
        self.group = np.unique(self.group, return_inverse=True)[1].astype(np.intp)
        self.refresh()
        return best

    def _alone(self, part: Ints) -> float:
        w = self.weights[part]
        mean = self.outcomes[part].sum() / w.sum()
        return float(w @ np.abs(self.values[part] - mean) ** self.alpha)


def searched_grouping(
    values: Floats, weights: Floats, outcomes: Floats, starts: list[Ints], alpha: float = 1.0
) -> tuple[float, Ints]:
    """Return the cheapest grouping that local search reaches from any of `starts`, and its cost."""
    best, chosen = np.inf, starts[0]
    for start in starts:
        groups = _Groups(values, weights, outcomes, start, alpha)
        for _ in range(SWEEPS):
            gain = sum(groups.move_best(item) for item in range(len(values)))
            if gain <= GAIN and groups.merge_best() + groups.split_best() <= GAIN:
                break
        for group in (start, groups.group):
            cost = grouping_cost(values, weights, outcomes, group, alpha)
            if cost < best:
                best, chosen = cost, group
    return best, np.unique(chosen, return_inverse=True)[1].astype(np.intp)


BATCH = 16
ROUNDING = 1e-16  # smaller gains are rounding errors of sums of residuals


def spread_boundaries(curve: Floats, limit: int) -> Ints:
    """At most `limit` boundaries, first and last included, at which the curve moves as little as possible.

    One boundary from each of equal blocks: the one where the curve is nearest to the level of the block
    before, so that bins between them have small residuals.
    """
    count = len(curve)
    if count <= limit:
        return np.arange(count)
    edges = np.linspace(1, count - 1, limit - 1).astype(np.intp)
    if level_boundaries.worth_compiling(count):
        return np.concatenate([[0], level_boundaries(curve, edges), [count - 1]])
    lowest = np.minimum.reduceat(curve, edges[:-1])
    highest = np.maximum.reduceat(curve[: count - 1], edges[:-1])
    chosen, level = [0], 0.0
    for low, high, start, stop in zip(lowest, highest, edges[:-1], edges[1:], strict=True):
        level = min(max(level, low), high)
        chosen.append(int(start + np.abs(curve[start:stop] - level).argmin()))
    return np.array([*chosen, count - 1])


def least_average_width(values: Floats, weights: Floats, curve: Floats, boundaries: Ints) -> Runs:
    """Minimize sum over bins of |residual| + weight * hull (Definition 6.1, distance-from-calibration)."""
    weight = cumulative(weights)

    def run_cost(starts: Ints, stop: int) -> Floats:
        hull = values[stop - 1] - values[starts]
        cost: Floats = np.abs(curve[stop] - curve[starts]) + hull * (weight[stop] - weight[starts])
        return cost

    if not hull_runs.worth_compiling(len(boundaries) ** 2 // 64):
        return best_runs(boundaries, run_cost)
    hull_runs.compile_now()
    right = values[boundaries - 1]  # unused at the first boundary
    left = values[np.minimum(boundaries, len(values) - 1)]  # and at the last
    starts = boundaries[first_of_runs(hull_runs(curve[boundaries], weight[boundaries], left, right))]
    stops = np.append(starts[1:], boundaries[-1])
    hulls = (values[stops - 1] - values[starts]) * (weight[stops] - weight[starts])
    cost = np.abs(curve[stops] - curve[starts]) + hulls
    return Runs(float(np.cumsum(cost)[-1]), starts)  # added in the order of the search


class Widest(NamedTuple):
    cost: float
    width: float


def least_largest_width(values: Floats, curve: Floats, boundaries: Ints) -> Widest:
    """Minimize sum over bins of |residual| + the largest hull, by branch and bound on that hull.

    The least binned error e(w) with hulls of at most w falls as w grows, so between the hulls numbered a and
    b nothing is below e(b) plus hull a + 1: ranges of hulls that cannot beat the best are dropped, the others
    halved. Hulls are compared as numbers of one list, made by one subtraction, so that the search ends.
    """
    bins = _Bins(values[boundaries[:-1]], values[boundaries[1:] - 1], curve[boundaries])
    hulls = _distinct_hulls(bins)
    error, used = _binned_errors(bins, hulls[[0, -1]])
    best = min(Widest(float(e + w), float(w)) for e, w in zip(error, used, strict=True))
    ranges = [(-1, int(np.searchsorted(hulls, used[1])), float(error[1]))]  # a, b and e(b)
    while ranges := [r for r in ranges if r[0] + 1 < r[1] and r[2] + hulls[r[0] + 1] < best.cost - ROUNDING]:
        ranges.sort(key=lambda r: r[2] + hulls[r[0] + 1])
        batch, ranges = ranges[:BATCH], ranges[BATCH:]
        middles = np.array([(a + b) // 2 for a, b, _ in batch])
        error, used = _binned_errors(bins, hulls[middles])
        reached = np.searchsorted(hulls, np.minimum(used, hulls[middles]))
        for (a, b, below), middle, k, e, w in zip(batch, middles, reached, error, used, strict=True):
            best = min(best, Widest(float(e + w), float(w)))
            ranges += [(a, int(k), float(e)), (int(middle), b, below)]
    return best


class _Bins(NamedTuple):
    left: Floats  # first value after each boundary but the last
    right: Floats  # last value before each boundary but the first
    level: Floats


def _distinct_hulls(bins: _Bins) -> Floats:
    wide = bins.right[None, :] - bins.left[:, None]
    return np.unique(wide[np.triu_indices(len(bins.left))])


def _binned_errors(bins: _Bins, widths: Floats) -> tuple[Floats, Floats]:
    """Least binned error with hulls of at most each of `widths`, and the largest hull then used.

    Infinite where a stretch between neighboring boundaries is wider already.
    """
    count = len(bins.level)
    best = np.zeros((len(widths), count))
    used = np.zeros((len(widths), count))
    rows = np.arange(len(widths))
    for k in range(1, count):
        hull = bins.right[k - 1] - bins.left[:k]
        first = min(int(np.searchsorted(-hull, -widths.max())), k - 1)  # hulls shrink from left to right
        hull = hull[first:]
        total = best[:, first:k] + np.abs(bins.level[k] - bins.level[first:k])
        total[hull > widths[:, None]] = np.inf
        at = total.argmin(axis=1)
        best[:, k] = total[rows, at]
        used[:, k] = np.maximum(used[rows, first + at], hull[at])
    return best[:, -1], used[:, -1]
