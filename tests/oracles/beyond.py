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
    return low, min([level for q, level in zip(quantiles, levels, strict=True) if q > y], default=1.0)


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


def sign_range_pvalue(
    hits: Sequence[int], promised: Sequence[float], order: Sequence[float], clusters: Sequence[int]
) -> float:
    """The share of all signs per cluster with a range at least as large, less what signs lack of skewness."""
    gaps, names = [h - p for h, p in zip(hits, promised, strict=True)], sorted(set(clusters))
    zeros, observed, reached = [0.0] * len(gaps), range_along(hits, promised, order), 0
    sums = [sum(gap for gap, name in zip(gaps, clusters, strict=True) if name == one) for one in names]
    away = [one - sum(sums) / len(sums) for one in sums]
    squares = sum(one**2 for one in away)
    skewness = sum(one**3 for one in away) / squares**1.5 if squares > 1e-20 else 0.0
    shift = 3 * skewness * sum(one**2 for one in sums) ** 0.5 / len(gaps)
    observed = min(observed, range_along([gap + shift for gap in gaps], zeros, order))
    for signs in itertools.product((-1, 1), repeat=len(names)):
        sign = dict(zip(names, signs, strict=True))
        flipped = [gap * sign[name] for gap, name in zip(gaps, clusters, strict=True)]
        reached += range_along(flipped, zeros, order) >= observed - 1e-9
    return reached / 2 ** len(names)


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


def starts(n: int, risk: float, confidence: float) -> list[tuple[int, float]]:
    """Sizes and shares: the first start, twice, four times ... its size up to a quarter of n, and n."""

    def smallest(alpha: float) -> int:
        return next(k for k in itertools.count(1) if (1 - risk) ** k <= alpha + 1e-12)

    allowed = 1 - confidence
    doubled = [smallest(allowed / 2)]
    while 8 * doubled[-1] <= n:
        doubled.append(2 * doubled[-1])
    if 4 * doubled[0] <= n:
        share = allowed / 2 / len(doubled)
        later = [(max(count, smallest(share)), share) for count in doubled[1:]]
        return [(doubled[0], allowed / 2), *later, (n, share)]
    return [(smallest(allowed), allowed)] if smallest(allowed) <= n else []


def threshold(y: Sequence[int], p: Sequence[float], risk: float, confidence: float) -> float | None:
    """The fallback procedure over sets of predictions strictly above the next one, one test at a time."""
    levels = sorted({v for v in p if v > 0}, reverse=True)
    n, waiting = len(p), starts(len(p), risk, confidence)
    reached = sum(v > 0 for v in p)  # records of confidence 0 are never answered
    best, carried, first = None, 0.0, waiting[0][0] if waiting else n + 1
    for place, level in enumerate(levels):
        answered = [k for k in range(n) if p[k] >= level]
        while waiting and len(answered) >= waiting[0][0]:
            carried += waiting.pop(0)[1]
        if len(answered) == reached and waiting and first <= reached:  # the last set is all that there is
            carried += sum(share for _, share in waiting)
        if not carried:
            continue
        errors = sum(1 - y[k] for k in answered)
        if binom.cdf(errors, len(answered), risk) <= carried * (1 + 1e-9):
            below = [v for v in p if v < level]
            best = max(below) if place + 1 < len(levels) or below else 0.0
        else:
            carried = 0.0
    return best
