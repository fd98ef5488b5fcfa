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


def score_statistic_by_projection(values, rates, weights, clip, least):
    """Rao's statistic of 1, l and l^2 (l the logit): how much of the standardised residuals they explain.

    Columns are made orthogonal one by one; one that others explain adds nothing.
    """
    held = np.clip(values, clip, 1 - clip)
    place = np.log(held) - np.log1p(-held)
    spread = np.sqrt(np.maximum(values * (1 - values), least))
    residual = np.sqrt(weights) * (rates - values) / spread
    basis, explained = [], 0.0
    for power in range(3):
        column = np.sqrt(weights) * spread * (place - place.mean()) ** power
        size = np.linalg.norm(column)
        for _ in range(2):  # the second round takes out what rounding left
            for other in basis:
                column = column - (column @ other) * other
        if np.linalg.norm(column) > 1e-8 * size:
            basis.append(column / np.linalg.norm(column))
            explained += (residual @ basis[-1]) ** 2
    return explained


def score_statistic_by_differences(values, rates, weights):
    """The same from the likelihood of logit q = l + a + b l + c l^2: numerical slopes and curvatures at 0."""
    place = np.log(values) - np.log1p(-values)
    powers = place[:, None] ** np.arange(3) / np.abs(place).max() ** np.arange(3)

    def likelihood(outcomes, beta):
        eta = place + powers @ beta
        return float(weights @ (outcomes * eta - np.logaddexp(0, eta)))

    unit, slope_step, curve_step = np.eye(3), 1e-5, 1e-3
    slopes = [
        (likelihood(rates, slope_step * e) - likelihood(rates, -slope_step * e)) / (2 * slope_step)
        for e in unit
    ]
    information = np.empty((3, 3))
    for i, one in enumerate(curve_step * unit):
        for j, other in enumerate(curve_step * unit):
            corners = [likelihood(values, a * one + b * other) * a * b for a in (1, -1) for b in (1, -1)]
            information[i, j] = -sum(corners) / (4 * curve_step**2)
    return float(slopes @ np.linalg.solve(information, slopes))
