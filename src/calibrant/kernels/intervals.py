"""Interval partitions: binned error plus width, minimised over partitions.

`curve` holds the cumulative residuals C_0 .. C_m and boundary b stands before level b, so the bin from
boundary i to j has the residual C_j - C_i and the hull v_{j-1} - v_i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.kernels.partitions import Runs, best_runs, first_of_runs
from calibrant.kernels.run_search import hull_runs, level_boundaries
from calibrant.sums import running

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

BATCH = 16
ROUNDING = 1e-16  # gains below this are no gains: sums of residuals err by more


def spread_boundaries(curve: Floats, limit: int) -> Ints:
    """At most `limit` boundaries, first and last included, at which the curve moves as little as possible.

    One boundary from each of equal blocks: the one where the curve is nearest to the level of the block
    before, so that bins between them have small residuals.
    """
    count = len(curve)
    if count <= limit:
        return np.arange(count)
    edges = np.linspace(1, count - 1, limit - 1).astype(np.intp)
    if level_boundaries.pays(count):
        return np.concatenate([[0], level_boundaries(curve, edges), [count - 1]])
    lowest = np.minimum.reduceat(curve, edges[:-1])
    highest = np.maximum.reduceat(curve[: count - 1], edges[:-1])
    chosen, level = [0], 0.0
    for low, high, start, stop in zip(lowest, highest, edges[:-1], edges[1:], strict=True):
        level = min(max(level, low), high)
        chosen.append(int(start + np.abs(curve[start:stop] - level).argmin()))
    return np.array([*chosen, count - 1])


def least_average_width(values: Floats, weights: Floats, curve: Floats, boundaries: Ints) -> Runs:
    """Minimise sum over bins of |residual| + weight * hull (Definition 6.1, distance-from-calibration)."""
    weight = running(weights)

    def run_cost(starts: Ints, stop: int) -> Floats:
        hull = values[stop - 1] - values[starts]
        cost: Floats = np.abs(curve[stop] - curve[starts]) + hull * (weight[stop] - weight[starts])
        return cost

    if not hull_runs.pays(len(boundaries) ** 2 // 64):
        return best_runs(boundaries, run_cost)
    hull_runs.expect_much()
    right = values[boundaries - 1]  # unused at the first boundary
    left = values[np.minimum(boundaries, len(values) - 1)]  # and at the last
    starts = boundaries[first_of_runs(hull_runs(curve[boundaries], weight[boundaries], left, right))]
    stops = np.append(starts[1:], boundaries[-1])
    hulls = (values[stops - 1] - values[starts]) * (weight[stops] - weight[starts])
    cost = np.abs(curve[stops] - curve[starts]) + hulls
    return Runs(float(np.cumsum(cost)[-1]), starts)  # added in the order of the search


class Widest(NamedTuple):
    """Least binned error plus largest hull, and that hull."""

    cost: float
    width: float


def least_largest_width(values: Floats, curve: Floats, boundaries: Ints) -> Widest:
    """Minimise sum over bins of |residual| + the largest hull, by branch and bound on that hull.

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
    """Where bins may start and stop, and the curve there."""

    left: Floats  # first value after each boundary but the last
    right: Floats  # last value before each boundary but the first
    level: Floats


def _distinct_hulls(bins: _Bins) -> Floats:
    """Return every hull that a bin can have, ascending."""
    wide = bins.right[None, :] - bins.left[:, None]
    return np.unique(wide[np.triu_indices(len(bins.left))])


def _binned_errors(bins: _Bins, widths: Floats) -> tuple[Floats, Floats]:
    """Least binned error with hulls of at most each of `widths`, and the largest hull then used.

    Infinite where a stretch between neighbouring boundaries is wider already.
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
