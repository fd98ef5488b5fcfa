"""Logistic fits of many outcomes at once: Cox's intercept and slope, row by row, by safeguarded Newton steps.

Every row has outcomes (weight of y per level) and weights of its own, all on the same ascending `x`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Array = npt.NDArray[np.float64]

STEPS = 200
POLISHING = 1e-4  # steps shorter than this are judged by the gradient alone, which has twice the digits


@compiled
def logistic_fits(outcomes: Array, weights: Array, x: Array) -> Array:
    """Return intercept and slope of each row; infinity twice where the likelihood has no maximum.

    One row of weights serves all rows of outcomes. Rows begin where the fit of all of them ends.
    """
    fits = np.full((len(outcomes), 2), np.inf)
    start = np.zeros(2)
    ones = np.sum(outcomes, axis=0)
    mass = np.sum(weights, axis=0) * (len(outcomes) / len(weights))
    if _overlap(ones, mass, x):
        start = _newton(ones, mass, x, start)
    for row in range(len(outcomes)):
        mass = weights[min(row, len(weights) - 1)]
        if _overlap(outcomes[row], mass, x):
            fits[row] = _newton(outcomes[row], mass, x, start)
    return fits


@compiled
def logistic_fit(x: Array, ones: Array, mass: Array, start: Array) -> Array:
    """Return intercept and slope of outcomes that overlap, from `start`."""
    return _newton(ones, mass, x, start)


def _overlap(ones: Array, mass: Array, x: Array) -> bool:
    """Return whether no threshold splits the outcomes: then intercept and slope are finite."""
    low_one, high_one = np.inf, -np.inf
    low_zero, high_zero = np.inf, -np.inf
    for j in range(len(x)):
        if ones[j] > 0.0:
            low_one, high_one = min(low_one, x[j]), max(high_one, x[j])
        if mass[j] - ones[j] > 0.0:
            low_zero, high_zero = min(low_zero, x[j]), max(high_zero, x[j])
    return low_one < high_zero and high_one > low_zero


def _newton(ones: Array, mass: Array, x: Array, start: Array) -> Array:
    """Take Newton steps, halved until they help, from `start` or, if that is better, the constant fit."""
    events = np.sum(ones)
    beta = np.array([math.log(events / (np.sum(mass) - events)), 0.0])
    sums = _derivatives(ones, mass, x, beta)
    there = _derivatives(ones, mass, x, start)
    if there[0] < sums[0]:
        beta, sums = start, there
    length = np.inf
    for _ in range(STEPS):
        step = _solved(sums)
        size = max(abs(step[0]), abs(step[1]))
        if size < POLISHING and not size < length / 2:
            break
        there = _derivatives(ones, mass, x, beta + step)
        # a quarter of the decrease that the slope promises: a smaller one may end on a plateau
        while size >= POLISHING and there[0] > sums[0] - (sums[1] * step[0] + sums[2] * step[1]) / 4:
            step = step / 2
            size /= 2
            there = _derivatives(ones, mass, x, beta + step)
        beta = beta + step
        sums = there
        length = size
    return beta


def _derivatives(ones: Array, mass: Array, x: Array, beta: Array) -> Array:
    """Return the loss, the two slopes of the likelihood and its three curvatures, in one pass."""
    loss, first, second = 0.0, 0.0, 0.0
    least, mixed, most = 0.0, 0.0, 0.0
    for j in range(len(x)):
        eta = beta[0] + beta[1] * x[j]
        small = math.exp(-abs(eta))
        rate = (1.0 if eta >= 0.0 else small) / (1.0 + small)
        surplus = ones[j] - mass[j] * rate
        spread = mass[j] * rate * (1.0 - rate)
        loss += mass[j] * (max(eta, 0.0) + math.log1p(small)) - ones[j] * eta
        first += surplus
        second += surplus * x[j]
        least += spread
        mixed += spread * x[j]
        most += spread * x[j] * x[j]
    return np.array([loss, first, second, least, mixed, most])


def _solved(sums: Array) -> Array:
    """Return the step to where the slopes would vanish; the shortest such step where many would do."""
    first, second = sums[1], sums[2]
    least, mixed, most = sums[3], sums[4], sums[5]
    determinant = least * most - mixed * mixed
    trace = least + most
    if determinant > 1e-14 * trace * trace:
        inverse = 1.0 / determinant
        return np.array(
            [(most * first - mixed * second) * inverse, (least * second - mixed * first) * inverse]
        )
    inverse = 1.0 / max(trace * trace, 1e-300)
    return np.array([(least * first + mixed * second) * inverse, (mixed * first + most * second) * inverse])
