"""Groups compared at equal predictions, by enumeration: every permutation within strata."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from scipy.optimize import minimize


def strata(p):
    """Number the strata of predictions in any order: about sqrt(n) of them, ties by their middle."""
    n = len(p)
    count = max(1, round(np.sqrt(n)))
    ranks = sorted(range(n), key=lambda i: p[i])
    wanted = {}
    for value in set(p):
        places = [rank for rank, i in enumerate(ranks) if p[i] == value]
        wanted[value] = (places[0] + places[-1] + 1) * count // (2 * n)
    return np.array([wanted[value] for value in p])


def recalibrated(p, y, w):
    """Return rates of the logistic curve with a ridge of 0.5 on its slope, by a general optimizer."""
    x = np.log(np.clip(p, 1e-6, 1 - 1e-6))
    x = x - np.log1p(-np.clip(p, 1e-6, 1 - 1e-6))
    x = (x - x.mean()) / max(x.std(), 1e-9)
    w = w / w.mean()

    def loss(beta):
        eta = beta[0] + beta[1] * x
        return w @ (np.logaddexp(0, eta) - y * eta) + 0.25 * beta[1] ** 2 + 0.5e-6 * beta[0] ** 2

    a, b = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    return 1 / (1 + np.exp(-a - b * x))


def informative(y, group, stratum):
    """Return which records lie in strata with several groups and several outcomes."""
    return np.array([
        len(set(group[stratum == k])) > 1 and len(set(y[stratum == k])) > 1 for k in stratum
    ])  # fmt: skip


def residuals(y, rates, group, stratum):
    """Return residuals centered within strata; 0 where a stratum says nothing."""
    e = y - rates
    for k in set(stratum):
        e[stratum == k] -= e[stratum == k].mean()
    return np.where(informative(y, group, stratum), e, 0.0)


def rearrangements(values, stratum):
    """Yield every arrangement of values within strata."""
    parts = [np.flatnonzero(stratum == k) for k in sorted(set(stratum))]
    for chosen in product(*(list(permutations(part)) for part in parts)):
        out = np.empty(len(values))
        for part, order in zip(parts, chosen, strict=True):
            out[part] = values[list(order)]
        yield out


def pvalue(e, group, stratum, statistic):
    """Return the exact permutation p-value of a statistic of (group sums, their covariance)."""
    n_groups = group.max() + 1
    onehot = np.eye(n_groups)[group]
    sums = np.array([one @ onehot for one in rearrangements(e, stratum)])
    covariance = sums.T @ sums / len(sums)
    values = np.array([statistic(one, covariance) for one in sums])
    return np.mean(values >= statistic(e @ onehot, covariance) * (1 - 1e-9)), covariance


def pair_pvalue(y, rates, group, stratum):
    """Return twice the smaller tail of the first group's events, given the events of every stratum."""
    use = informative(y, group, stratum)
    y, rates, group, stratum = y[use], rates[use], group[use], stratum[use]
    odds = rates / (1 - rates)
    totals = {k: y[stratum == k].sum() for k in set(stratum)}
    masses = {}
    for outcome in product((0, 1), repeat=len(y)):
        one = np.array(outcome)
        if all(one[stratum == k].sum() == total for k, total in totals.items()):
            events = one[group == 0].sum()
            masses[events] = masses.get(events, 0.0) + float(np.prod(odds**one))
    seen, whole = y[group == 0].sum(), sum(masses.values())
    above = sum(mass for events, mass in masses.items() if events >= seen) / whole
    below = sum(mass for events, mass in masses.items() if events <= seen) / whole
    return min(1.0, 2 * min(above, below))
