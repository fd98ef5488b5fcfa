"""Cheapest ways to cut or group levels: dynamic programs over boundaries and over subsets.

A group of levels is sent to its mean outcome, at the cost sum w |v - mean|. `values` ascend (ties allowed),
boundary b stands before level b, so a run from boundary i to boundary j holds levels i .. j-1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.kernels.run_search import mean_runs
from calibrant.sums import running, summed

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


class Runs(NamedTuple):
    """A cost and the first level of every run."""

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
    """Return the boundaries at which runs start, from the best previous boundary of each."""
    cuts = [len(previous) - 1]
    while cuts[-1] > 0:
        cuts.append(int(previous[cuts[-1]]))
    return np.array(cuts[:0:-1], dtype=np.intp)


def contiguous_groups(values: Floats, weights: Floats, outcomes: Floats, boundaries: Ints) -> Runs:
    """Cheapest grouping into runs of neighbouring levels, cut at `boundaries` only.

    Differences of running sums choose the runs; they lose runs of less than 1e-16 of the weight, which any
    mean in [0, 1] serves. The runs chosen are then priced level by level.
    """
    weight, outcome, moment = running(weights), running(outcomes), running(weights * values)

    def run_cost(starts: Ints, stop: int) -> Floats:
        mass = weight[stop] - weight[starts]
        mean = np.clip((outcome[stop] - outcome[starts]) / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
        middle = np.clip(np.searchsorted(values, mean), starts, stop)
        below = mean * (weight[middle] - weight[starts]) - (moment[middle] - moment[starts])
        above = (moment[stop] - moment[middle]) - mean * (weight[stop] - weight[middle])
        cost: Floats = np.maximum(below + above, 0.0)
        return cost

    if mean_runs.pays(len(boundaries) ** 2 // 64):
        mean_runs.expect_much()
        starts = boundaries[first_of_runs(mean_runs(values, weight, outcome, moment, boundaries))]
    else:
        starts = best_runs(boundaries, run_cost).starts
    return Runs(grouping_cost(values, weights, outcomes, run_of_levels(starts, len(values))), starts)


def run_of_levels(starts: Ints, levels: int) -> Ints:
    """Return the number of the run that each level belongs to."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=levels))


def cost_apart(values: Floats, weights: Floats, outcomes: Floats, alpha: float = 1.0) -> float:
    """Price the grouping in which every level is alone, as grouping_cost does."""
    return _mean_move(
        values,
        weights,
        lambda part: outcomes[part] / np.where(weights[part] > 0, weights[part], 1.0),
        alpha,
    )


def grouping_cost(
    values: Floats, weights: Floats, outcomes: Floats, group: Ints, alpha: float = 1.0
) -> float:
    """Price a grouping: the mean distance^alpha from each level to the mean outcome of its group."""
    mass = np.bincount(group, weights)
    mean = np.bincount(group, outcomes) / np.where(mass > 0, mass, 1.0)  # a number may stand for no group
    return _mean_move(values, weights, lambda part: mean[group[part]], alpha)


def _mean_move(values: Floats, weights: Floats, means: Callable[[slice], Floats], alpha: float) -> float:
    """Return the sum of weight times |value - mean|^alpha, `means` of a part of the levels at a time."""

    def moves(part: slice) -> Floats:
        away = np.abs(values[part] - means(part))
        return np.asarray(weights[part] * (away if alpha == 1 else away**alpha))

    return summed(moves, len(values))


class Grouping(NamedTuple):
    """A cost and the group that each item belongs to."""

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
