"""Decision loss the long way: a linear program over every payoff table, and sums over records."""

from __future__ import annotations

import itertools
import math

import numpy as np
from samples import Sample
from scipy.optimize import linprog

from oracles.levels import levels


def decision_loss(sample: Sample) -> float:
    """The worst task, by linear programming over all payoff tables with entries in [0, 1].

    By the revelation principle a task is a table S[report, outcome] in which reporting what you believe
    is a best response, for every belief that occurs (predictions and recalibrated predictions).
    """
    table = levels(sample)
    rates = [min(1.0, max(0.0, a / w)) for _, w, a in table]
    beliefs = sorted({v for v, _, _ in table} | set(rates))
    place = {belief: k for k, belief in enumerate(beliefs)}
    k = len(beliefs)
    gain = np.zeros(2 * k)  # S[r, 0] first, then S[r, 1]
    for (v, w, _), rate in zip(table, rates, strict=True):
        for report, sign in ((rate, 1.0), (v, -1.0)):
            gain[place[report]] += sign * w * (1 - rate)
            gain[k + place[report]] += sign * w * rate
    proper = []
    for r in range(k):
        for other in range(k):
            if other != r:
                row = np.zeros(2 * k)
                row[[other, k + other]] += 1 - beliefs[r], beliefs[r]
                row[[r, k + r]] -= 1 - beliefs[r], beliefs[r]
                proper.append(row)
    if not proper:
        return 0.0
    scale = max(float(np.abs(gain).max()), 1e-300)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -gain / scale, A_ub=np.array(proper), b_ub=np.zeros(len(proper)), bounds=(0, 1), options=tight
    )
    assert found.status == 0
    return -float(found.fun) * scale


def threshold_loss(sample: Sample, mu: float) -> float:
    """h(mu), level by level; at a prediction that equals mu the wrong action is taken."""
    total = 0.0
    for v, w, a in levels(sample):
        if min(v, a / w) <= mu <= max(v, a / w):
            total += abs(a - w * mu)
    return total


def table_loss(sample: Sample, payoff: np.ndarray) -> float:
    """Best action in hindsight less the worst best response to the prediction, level by level."""
    total = 0.0
    for v, w, a in levels(sample):
        by_outcome = payoff @ np.array([w - a, a])
        expected = payoff @ np.array([1 - v, v])
        good = expected >= expected.max() - 1e-12 * np.ptp(payoff)
        total += by_outcome.max() - by_outcome[good].min()
    return float(total)


def swap_regret(y: np.ndarray, w: np.ndarray, taken: np.ndarray, payoff: np.ndarray) -> float:
    """Try every map from actions to actions."""
    actions = range(len(payoff))

    def earned(swap: tuple[int, ...]) -> float:
        rows = [payoff[swap[a]] for a in taken]
        return float(sum(wi * ((1 - yi) * r[0] + yi * r[1]) for wi, yi, r in zip(w, y, rows, strict=True)))

    maps = itertools.product(actions, repeat=len(payoff))
    return max(earned(swap) for swap in maps) - earned(tuple(actions))


def net_benefit(sample: Sample, threshold: float) -> float:
    """True positives less false positives at the odds of the threshold, record by record."""
    treated = sample.p >= threshold
    ones = float(np.sum(sample.weights[treated] * sample.y[treated]))
    return ones - (float(np.sum(sample.weights[treated])) - ones) * threshold / (1 - threshold)


def better_report(y: np.ndarray, w: np.ndarray, used: np.ndarray, other: np.ndarray) -> float:
    """The most that any bounded proper payoff loses by reports `used` instead of `other`, record by record.

    A linear program over all tables S[report, outcome] in [0, 1] for which every report is a best response to
    itself. Equal reports earn the same: a threshold separates both sides of the comparison alike.
    """
    beliefs = np.unique(np.concatenate((used, other)))
    k = len(beliefs)
    gain = np.zeros(2 * k)
    for reports, sign in ((other, 1.0), (used, -1.0)):
        place = np.searchsorted(beliefs, reports)
        np.add.at(gain, place, sign * w * (1 - y))
        np.add.at(gain, k + place, sign * w * y)
    proper = np.zeros((k * k, 2 * k))
    for r, belief in enumerate(beliefs):
        for lie in range(k):
            row = proper[r * k + lie]
            row[[lie, k + lie]] += 1 - belief, belief
            row[[r, k + r]] -= 1 - belief, belief
    scale = float(np.abs(gain).max())
    if scale == 0:
        return 0.0
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(-gain / scale, A_ub=proper, b_ub=np.zeros(k * k), bounds=(0, 1), options=tight)
    assert found.status == 0
    return -float(found.fun) * scale


def best_monotone(sample: Sample) -> np.ndarray:
    """The best non-decreasing map by the min-max formula, one rate per record."""
    table = levels(sample)
    sums = [(w, a) for _, w, a in table]

    def rate(i: int, j: int) -> float:
        return sum(a for _, a in sums[i : j + 1]) / sum(w for w, _ in sums[i : j + 1])

    m = len(table)
    fit = [max(min(rate(i, j) for j in range(k, m)) for i in range(k + 1)) for k in range(m)]
    at = {v: fit[k] for k, (v, _, _) in enumerate(table)}
    return np.array([at[float(p)] for p in sample.p])


def wilson(share, size, z):
    """Wilson's interval of a share."""
    centre = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = (
        z * math.sqrt(max(0.0, share * (1 - share) / size + z * z / (4 * size * size))) / (1 + z * z / size)
    )
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def difference_limits(y, first, second, w, odds, z=1.959963984540054):
    """The interval of a difference of net benefits at one threshold, from four weighted shares (MOVER)."""
    events = [bool(label) for label in y]
    members = [
        [f and not s and e for f, s, e in zip(first, second, events, strict=True)],
        [s and not f and e for f, s, e in zip(first, second, events, strict=True)],
        [f and not s and not e for f, s, e in zip(first, second, events, strict=True)],
        [s and not f and not e for f, s, e in zip(first, second, events, strict=True)],
    ]
    factors = [1.0, -1.0, -odds, odds]
    shares = [sum(a for a, i in zip(w, inside, strict=True) if i) for inside in members]

    def covariance(j, k):
        terms = zip(w, members[j], members[k], strict=True)
        return sum(a * a * (i - shares[j]) * (m - shares[k]) for a, i, m in terms)

    down, up = [], []
    for j, (share, factor) in enumerate(zip(shares, factors, strict=True)):
        own = [a for a, e in zip(w, events, strict=True) if e == (j < 2)]
        heavy = sum(a * a for a in own) / sum(own) if own else max(w)
        size = share * (1 - share) / covariance(j, j) if share > 0 else 1 / max(heavy, sum(a * a for a in w))
        low, high = wilson(share, size, z)
        ends = (share - low, high - share) if factor > 0 else (high - share, share - low)
        down.append(abs(factor) * ends[0])
        up.append(abs(factor) * ends[1])

    def joined(parts):
        total = sum(part**2 for part in parts)
        for j in range(4):
            for k in range(j):
                if shares[j] > 0 and shares[k] > 0:
                    related = covariance(j, k) / math.sqrt(covariance(j, j) * covariance(k, k))
                    sign = math.copysign(1, factors[j]) * math.copysign(1, factors[k])
                    total += 2 * related * sign * parts[j] * parts[k]
        return math.sqrt(max(0.0, total))

    value = sum(f * share for f, share in zip(factors, shares, strict=True))
    return value - joined(down), value + joined(up)
