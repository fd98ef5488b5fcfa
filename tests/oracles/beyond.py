"""Distributions, censored times and abstention, straight from their definitions, row by row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom


def uncensored_before(time: Sequence[float], event: Sequence[int], t: float) -> float:
    """Kaplan-Meier of the censoring times, just before t; events come before censorings at ties."""
    left = 1.0
    for s in sorted({u for u, e in zip(time, event, strict=True) if e == 0 and u < t}):
        lost = sum(u == s and e == 0 for u, e in zip(time, event, strict=True))
        at_risk = sum(u > s or (u == s and e == 0) for u, e in zip(time, event, strict=True))
        left *= 1 - lost / at_risk
    return left


def censoring_weights(time: Sequence[float], event: Sequence[int], horizon: float) -> list[float]:
    return [
        0.0 if e == 0 and t < horizon else 1 / uncensored_before(time, event, min(t, horizon))
        for t, e in zip(time, event, strict=True)
    ]


def aalen_johansen(time: Sequence[float], event: Sequence[int], horizon: float) -> float:
    """Probability of cause 1 by the horizon: the sum of S(t-) times the hazard of cause 1."""
    rate, alive = 0.0, 1.0
    for s in sorted({u for u, e in zip(time, event, strict=True) if e > 0 and u <= horizon}):
        at_risk = sum(u >= s for u in time)
        first = sum(u == s and e == 1 for u, e in zip(time, event, strict=True))
        every = sum(u == s and e > 0 for u, e in zip(time, event, strict=True))
        rate += alive * first / at_risk
        alive *= 1 - every / at_risk
    return rate


def member_interval(members: Sequence[float], y: float) -> tuple[float, float]:
    """The ranks that y can have among the members if ties are broken at random."""
    cells = len(members) + 1
    below, equal = sum(x < y for x in members), sum(x == y for x in members)
    return below / cells, (below + equal + 1) / cells


def quantile_interval(quantiles: Sequence[float], levels: Sequence[float], y: float) -> tuple[float, float]:
    low = max([level for q, level in zip(quantiles, levels, strict=True) if q < y], default=0.0)
    at = [level for q, level in zip(quantiles, levels, strict=True) if q == y]
    above = [level for q, level in zip(quantiles, levels, strict=True) if q > y]
    return low, max(at) if at else min(above, default=1.0)


def cdf_interval(values: Sequence[float], thresholds: Sequence[float], y: float) -> tuple[float, float]:
    low = max([v for v, z in zip(values, thresholds, strict=True) if z < y], default=0.0)
    return low, min([v for v, z in zip(values, thresholds, strict=True) if z >= y], default=1.0)


def ensemble_crps(members: Sequence[float], y: float, fair: bool = False) -> float:
    m = len(members)
    pairs = sum(abs(a - b) for a in members for b in members)
    return sum(abs(x - y) for x in members) / m - pairs / (2 * m * (m - 1 if fair else m))


def step_crps(members: Sequence[float], y: float) -> float:
    """The integral of (F - 1[y <= z])^2 over the pieces between members and outcome."""
    ends = sorted({*members, y})
    total = 0.0
    for a, b in itertools.pairwise(ends):
        f = sum(x <= a for x in members) / len(members)
        total += (b - a) * (f - (y <= a)) ** 2
    return total


def uniformity(values: Sequence[float]) -> tuple[float, float, float]:
    """Kuiper, Kolmogorov-Smirnov and Cramér-von Mises against the uniform law."""
    n, ordered = len(values), sorted(values)
    above = max(k / n - u for k, u in enumerate(ordered, 1))
    below = max(u - (k - 1) / n for k, u in enumerate(ordered, 1))
    cramer = 1 / (12 * n) + sum((u - (2 * k - 1) / (2 * n)) ** 2 for k, u in enumerate(ordered, 1))
    return above + below, max(above, below), cramer


def range_along(hits: Sequence[float], promised: Sequence[float], order: Sequence[float]) -> float:
    """Kuiper's range of the sums of hit - promised over all records up to each value of the order."""
    sums = [0.0] + [
        sum(h - p for h, p, q in zip(hits, promised, order, strict=True) if q <= value)
        for value in sorted(set(order))
    ]
    return max(sums) - min(sums)


def exact_range_pvalue(hits: Sequence[int], promised: Sequence[float], order: Sequence[float]) -> float:
    """The probability of a range at least as large, over all outcomes."""
    observed, total = range_along(hits, promised, order), 0.0
    for outcome in itertools.product((0, 1), repeat=len(hits)):
        chance = math.prod(p if h else 1 - p for h, p in zip(outcome, promised, strict=True))
        total += chance * (range_along(outcome, promised, order) >= observed - 1e-9)
    return total


def risk_at(y: Sequence[int], p: Sequence[float], least: float) -> tuple[float, float, float]:
    """Coverage, promised and realized risk of the records with confidence of at least `least`."""
    rows = [k for k, v in enumerate(p) if v >= least]
    return (
        len(rows) / len(p),
        sum(1 - p[k] for k in rows) / len(rows),
        sum(1 - y[k] for k in rows) / len(rows),
    )


def area(y: Sequence[int], p: Sequence[float]) -> float:
    """Mean over all orders of ties of the mean risk among the 1, 2, ..., n most confident records."""
    found = []
    for order in itertools.permutations(range(len(y))):
        if any(p[a] < p[b] for a, b in itertools.pairwise(order)):
            continue
        errors = np.cumsum([1 - y[k] for k in order])
        found.append(float(np.mean(errors / np.arange(1, len(y) + 1))))
    return float(np.mean(found))


def threshold(y: Sequence[int], p: Sequence[float], risk: float, confidence: float) -> float | None:
    """The fallback procedure over sets of predictions strictly above the next one, one test at a time."""
    first = next(k for k in itertools.count(1) if (1 - risk) ** k <= 1 - confidence + 1e-12)
    levels = sorted({v for v in p if v > 0}, reverse=True)
    n, starts = len(p), [first]
    while 4 * starts[-1] <= n:
        starts.append(2 * starts[-1])
    starts += [n] * (n >= 8 * first)
    waiting = list(starts)
    best, carried = None, 0.0
    for place, level in enumerate(levels):
        answered = [k for k in range(n) if p[k] >= level]
        while waiting and len(answered) >= waiting[0]:
            carried += (1 - confidence) / len(starts)
            waiting.pop(0)
        if not carried:
            continue
        errors = sum(1 - y[k] for k in answered)
        if binom.cdf(errors, len(answered), risk) <= carried * (1 + 1e-9):
            below = [v for v in p if v < level]
            best = max(below) if place + 1 < len(levels) or below else 0.0
        else:
            carried = 0.0
    return best
