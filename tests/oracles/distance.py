"""Slow, obviously right twins of the distances to calibration, straight from their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array


def lower_distance_on(targets, values, mass, alpha=1.0):
    """Linear program (11) of distance-from-calibration over a finite set of targets u.

    Returns the value and the multipliers r[y, j] of the marginal constraints.
    """
    m, k = len(values), len(targets)
    cost = np.abs(targets[None, :] - values[:, None]) ** alpha
    column = np.arange(m * k).reshape(m, k)
    rows, cols, entries = [], [], []
    for y in (0, 1):
        rows.append(np.repeat(y * m + np.arange(m), k))
        cols.append((y * m * k + column).ravel())
        entries.append(np.ones(m * k))
        rows.append(2 * m + np.tile(np.arange(k), m))
        cols.append((y * m * k + column).ravel())
        entries.append(np.tile(y - targets, m))
    equal = coo_array(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(cols))), shape=(2 * m + k, 2 * m * k)
    )
    answer = linprog(
        np.tile(cost.ravel(), 2),
        A_eq=equal.tocsr(),
        b_eq=np.concatenate([mass[0], mass[1], np.zeros(k)]),
        bounds=(0, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return answer.fun, answer.eqlin.marginals[: 2 * m].reshape(2, m)


def lower_distance(values, mass, alpha=1.0, tolerance=1e-10, mesh=100_001):
    """Lower distance with u over all of [0,1]: add the worst u's to the program until none is violated."""
    scan = np.linspace(0.0, 1.0, mesh)
    targets = np.unique(np.concatenate([values, np.linspace(0, 1, 101)]))
    for _ in range(40):
        value, r = lower_distance_on(targets, values, mass, alpha)
        reach = [max_minus_distance(scan, values, r[y], alpha) for y in (0, 1)]
        over = (1 - scan) * reach[0] + scan * reach[1]
        peak = over > tolerance
        peak[1:] &= over[1:] >= over[:-1]
        peak[:-1] &= over[:-1] >= over[1:]
        new = np.setdiff1d(scan[peak], targets)
        if len(new) == 0:
            return value
        targets = np.union1d(targets, new[np.argsort(-over[peak])[:200]] if len(new) > 200 else new)
    raise AssertionError("the oracle did not settle")


def max_minus_distance(scan, values, r, alpha):
    best = np.full(len(scan), -np.inf)
    for v, height in zip(values, r, strict=True):
        np.maximum(best, height - np.abs(scan - v) ** alpha, out=best)
    return best


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every way to split the items into groups."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for i, group in enumerate(smaller):
            yield [*smaller[:i], [first, *group], *smaller[i + 1 :]]


def group_cost(group, values, weights, outcomes):
    group = list(group)
    mean = outcomes[group].sum() / weights[group].sum()
    return float(np.sum(weights[group] * np.abs(values[group] - mean)))


def upper_distance(values, weights, outcomes):
    """Cheapest way to send every level set to the mean outcome of its group, over all groupings."""
    return min(
        sum(group_cost(group, values, weights, outcomes) for group in grouping)
        for grouping in partitions(list(range(len(values))))
    )


def interval_partitions(count: int) -> Iterator[list[range]]:
    """Every way to cut 0..count-1 into runs."""
    for size in range(count):
        for cuts in itertools.combinations(range(1, count), size):
            edges = [0, *cuts, count]
            yield [range(a, b) for a, b in itertools.pairwise(edges)]


def interval_calibration_error(values, weights, outcomes, width="average"):
    """Definition 6.1 of distance-from-calibration, over all interval partitions."""
    best = np.inf
    for bins in interval_partitions(len(values)):
        error = sum(abs(sum(outcomes[j] - weights[j] * values[j] for j in b)) for b in bins)
        widths = [values[b[-1]] - values[b[0]] for b in bins]
        if width == "average":
            error += sum(wide * sum(weights[j] for j in b) for wide, b in zip(widths, bins, strict=True))
        else:
            error += max(widths)
        best = min(best, error)
    return best


def random_interval_error(values, weights, outcomes, width):
    """Mean over the shift of the binned error: its pieces between breakpoints, one middle each."""
    breaks = np.unique(np.concatenate([[0.0, width], np.mod(values, width)]))
    residuals = outcomes - weights * values
    total = 0.0
    for left, right in itertools.pairwise(breaks):
        shift = (left + right) / 2
        bins: dict[int, float] = {}
        for v, b in zip(values, residuals, strict=True):
            key = int(np.floor((v - shift) / width))
            bins[key] = bins.get(key, 0.0) + b
        total += (right - left) / width * sum(abs(b) for b in bins.values())
    return total


def least_largest_width(p, y, w) -> Fraction:
    """Least binned error plus largest hull, in fractions: a dynamic program for every hull there is.

    `p` ascends and is distinct; floats are taken as the fractions they are.
    """
    v = [Fraction(float(x)) for x in p]
    mass = [Fraction(float(x)) for x in w]
    curve = [Fraction(0)]
    for value, outcome, weight in zip(v, y, mass, strict=True):
        curve.append(curve[-1] + weight * (Fraction(float(outcome)) - value) / sum(mass))
    m, best = len(v), None
    for hull in sorted({v[j] - v[i] for i in range(m) for j in range(i, m)}):
        error = [Fraction(0)]
        for j in range(1, m + 1):
            starts = [i for i in range(j) if v[j - 1] - v[i] <= hull]
            error.append(min(error[i] + abs(curve[j] - curve[i]) for i in starts))
        best = error[m] + hull if best is None else min(best, error[m] + hull)
    return best
