"""Logistic fits of many outcomes at once: Cox's intercept and slope, row by row, by safeguarded Newton steps.

Every row has outcomes (weight of y per level) and weights of its own, all on the same ascending `x`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled

Array = npt.NDArray[np.float64]
Sums = tuple[float, float, float, float, float, float]

STEPS = 200
POLISHING = 1e-4  # steps shorter than this are judged by the gradient alone, which has twice the digits


def logistic_fit(x: Array, ones: Array, mass: Array, start: Array) -> Array:
    """Return intercept and slope of one row of outcomes, from `start`."""
    return np.asarray(_fitted(ones[np.newaxis], mass[np.newaxis], x, start)[0])


def logistic_fits(outcomes: Array, weights: Array, x: Array) -> Array:
    """Return intercept and slope of each row; infinity twice where the likelihood has no maximum.

    One row of weights serves all rows of outcomes. Rows begin where the fit of all of them ends.
    """
    if _fits.worth_compiling(outcomes.size):
        _fits.compile_now()
    mass = np.sum(weights, axis=0) * (len(outcomes) / len(weights))
    start = logistic_fit(x, np.sum(outcomes, axis=0), mass, np.zeros(2))
    return _fitted(outcomes, weights, x, np.zeros(2) if np.isinf(start[1]) else start)


def _fitted(ones: Array, mass: Array, x: Array, start: Array) -> Array:
    if _fits.worth_compiling(ones.size):
        _fits.compile_now()
        return _fits(ones, mass, x, float(start[0]), float(start[1]))
    # the same arithmetic to the last digit; lists are quicker for Python
    return _fits.plain(ones.tolist(), mass.tolist(), x.tolist(), float(start[0]), float(start[1]))


@compiled
def _fits(outcomes: Array, weights: Array, x: Array, intercept: float, slope: float) -> Array:
    fits = np.empty((len(outcomes), 2))
    for row in range(len(outcomes)):
        mass = weights[min(row, len(weights) - 1)]
        fits[row, 0], fits[row, 1] = np.inf, np.inf
        if _overlap(outcomes[row], mass, x):
            fits[row, 0], fits[row, 1] = _newton(outcomes[row], mass, x, intercept, slope)
    return fits


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


def _newton(ones: Array, mass: Array, x: Array, intercept: float, slope: float) -> tuple[float, float]:
    """Take Newton steps, halved until they help, from the better of the start given and the constant fit."""
    events, others = 0.0, 0.0
    for j in range(len(x)):
        events += ones[j]
        others += mass[j] - ones[j]
    sums = _derivatives(ones, mass, x, intercept, slope)
    constant = math.log(events / others)
    there = _derivatives(ones, mass, x, constant, 0.0)
    if not sums[0] < there[0]:
        intercept, slope, sums = constant, 0.0, there
    length = np.inf
    for _ in range(STEPS):
        rise, tilt = _solved(sums)
        size = max(abs(rise), abs(tilt))
        if size < POLISHING and not size < length / 2:
            break
        while True:
            there = _derivatives(ones, mass, x, intercept + rise, slope + tilt)
            # a quarter of the decrease that the slope promises: a smaller one may end on a plateau
            if size < POLISHING or not there[0] > sums[0] - (sums[1] * rise + sums[2] * tilt) / 4:
                break
            rise, tilt, size = rise / 2, tilt / 2, size / 2
        intercept, slope, sums, length = intercept + rise, slope + tilt, there, size
    return intercept, slope


def _derivatives(ones: Array, mass: Array, x: Array, intercept: float, slope: float) -> Sums:
    """Return the loss, the two slopes of the likelihood and its three curvatures, in one pass."""
    loss, first, second = 0.0, 0.0, 0.0
    least, mixed, most = 0.0, 0.0, 0.0
    for j in range(len(x)):
        eta = intercept + slope * x[j]
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
    return loss, first, second, least, mixed, most


def _solved(sums: Sums) -> tuple[float, float]:
    """Return the step to where the slopes would vanish; the shortest such step where many would do."""
    _, first, second, least, mixed, most = sums
    determinant = least * most - mixed * mixed
    trace = least + most
    if determinant > 1e-14 * trace * trace:
        inverse = 1.0 / determinant
        return (most * first - mixed * second) * inverse, (least * second - mixed * first) * inverse
    inverse = 1.0 / max(trace * trace, 1e-300)
    return (least * first + mixed * second) * inverse, (mixed * first + most * second) * inverse
