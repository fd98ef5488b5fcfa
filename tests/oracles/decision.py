"""Decision loss the long way: a linear program over every payoff table, and sums over records."""

from __future__ import annotations

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
