"""Fits the slow way: refits with one more record, bounded least squares, general optimisers."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression, lsq_linear, minimize


def merge(values, rates, weights):
    """Levels by a loop over the distinct values."""
    distinct = sorted({float(v) + 0.0 for v in values})
    mass = [sum(w for v, w in zip(values, weights, strict=True) if v == d) for d in distinct]
    ones = [sum(w * r for v, r, w in zip(values, rates, weights, strict=True) if v == d) for d in distinct]
    return np.array(distinct), np.array(ones) / np.array(mass), np.array(mass)


def isotonic_by_max_min(rates, weights):
    """g_k = max over i <= k of min over j >= k of the mean of levels i..j."""
    count = len(rates)

    def mean(i, j):
        return float(np.average(rates[i : j + 1], weights=weights[i : j + 1]))

    return np.array(
        [max(min(mean(i, j) for j in range(k, count)) for i in range(k + 1)) for k in range(count)]
    )


def honest_low_end(rates, weights):
    """The greatest t with t <= (1/2) / (1 + weight of the rates below t), by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        fits = middle <= 0.5 / (1 + sum(w for r, w in zip(rates, weights, strict=True) if r < middle))
        low, high = (middle, high) if fits else (low, middle)
    return low


def venn_abers_by_refit(values, rates, weights, query):
    """Add the query with outcome 0, then 1, refit, read its value off."""
    pair = []
    for label in (0.0, 1.0):
        x, r, w = merge(np.append(values, query), np.append(rates, label), np.append(weights, 1.0))
        pair.append(isotonic_regression(r, weights=w).x[np.searchsorted(x, query)])
    return tuple(pair)


def bounded_slope_by_least_squares(values, rates, weights, slope):
    """First value free, steps between 0 and the bound: a least squares problem with bounds."""
    count, root = len(values), np.sqrt(weights)
    steps = np.tril(np.ones((count, count))) * root[:, None]
    low = np.r_[-np.inf, np.zeros(count - 1)]
    high = np.r_[np.inf, np.maximum(slope * np.diff(values), 1e-300)]
    found = lsq_linear(steps, root * rates, (low, high), method="bvls", tol=1e-15, max_iter=5000)
    return np.cumsum(found.x)


def penalised_logistic(columns, offset, rates, weights, centre, precision):
    """The coefficients by a general optimiser, from the definition."""
    X = np.column_stack(columns)

    def loss(beta):
        eta = offset + X @ beta
        away = beta - centre
        return np.sum(weights * (np.logaddexp(0, eta) - rates * eta)) + 0.5 * away @ precision @ away

    start = minimize(
        loss, centre, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 9999}
    )
    return minimize(loss, start.x, method="BFGS", options={"gtol": 1e-9}).x
