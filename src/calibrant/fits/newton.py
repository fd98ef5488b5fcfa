"""Penalised logistic regression by Newton's method, for any design that knows its own sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.results import Array

STEPS = 100
SMALLEST_HALVING = 2.0**-40
POLISHING = 1e-4  # shorter steps are judged by the gradient alone, which has twice the digits of the loss
NEARLY_THERE = 4  # plain steps from a good start
GAIN_LEFT = 1e-12  # of the total weight: coefficients are then off by 1e-6, and by its square after the step
BLOCK = 2**13  # levels at a time: they stay in the cache, and products of them on one thread


class Design(Protocol):
    """How coefficients become a linear predictor, and the two sums that Newton's method needs."""

    def predictor(self, beta: Array) -> Array:
        """Return eta, one number per level."""

    def gradient(self, surplus: Array) -> Array:
        """Return X' surplus."""

    def curvature(self, spread: Array) -> Array:
        """Return X' diag(spread) X."""


@dataclass(frozen=True, slots=True, eq=False)
class Regressors:
    """A few columns, and an offset that has no coefficient."""

    columns: tuple[Array, ...]
    offset: Array | float = 0.0

    def part(self, rows: slice) -> Regressors:
        """Return some of the levels."""
        offset = self.offset[rows] if isinstance(self.offset, np.ndarray) else self.offset
        return Regressors(tuple(column[rows] for column in self.columns), offset)

    def predictor(self, beta: Array) -> Array:
        """Return the offset plus the weighted sum of the columns."""
        eta = self.columns[0] * beta[0] + self.offset
        for column, coefficient in zip(self.columns[1:], beta[1:], strict=True):
            eta = eta + coefficient * column
        return np.asarray(eta)

    def gradient(self, surplus: Array) -> Array:
        """Return the product of each column with the surplus."""
        return np.array([column @ surplus for column in self.columns])

    def curvature(self, spread: Array) -> Array:
        """Return the products of all pairs of columns, weighted by the spread."""
        spreads = [column * spread for column in self.columns]
        return np.array([[left @ right for right in self.columns] for left in spreads])


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The coefficients, the penalised negative log likelihood there, and its curvature."""

    beta: Array
    loss: float
    curvature: Array

    def evidence(self, precision: Array) -> float:
        """Return the Laplace approximation of the log marginal likelihood, up to a constant."""
        prior, posterior = np.linalg.slogdet(precision)[1], np.linalg.slogdet(self.curvature)[1]
        return float(-self.loss + 0.5 * prior - 0.5 * posterior)


def minimise(
    design: Design,
    rates: Array,
    weights: Array,
    *,
    centre: Array,
    precision: Array,
    start: Array | None = None,
    tolerance: float = 1e-15,
    steps: int = STEPS,
) -> Optimum:
    """Minimise sum w (ln(1 + e^eta) - r eta) + (beta - centre)' P (beta - centre) / 2.

    Newton's method with halved steps; it ends when a step promises less than `tolerance` of the total weight.
    """
    from scipy.special import expit

    def loss(eta: Array, beta: Array) -> float:
        away = beta - centre
        return float(weights @ (np.logaddexp(0.0, eta) - rates * eta) + 0.5 * away @ precision @ away)

    total = float(weights.sum())
    beta = (centre if start is None else start).astype(np.float64)
    eta = design.predictor(beta)
    best, length = loss(eta, beta), np.inf
    for _ in range(steps):
        rate = expit(eta)
        gradient = design.gradient(weights * (rate - rates)) + precision @ (beta - centre)
        curvature = design.curvature(weights * rate * (1.0 - rate)) + precision
        step = np.linalg.solve(curvature, gradient)
        promise, size, share = float(gradient @ step), float(np.abs(step).max()), 1.0
        if promise <= 0 or (size < POLISHING and not size < length / 2):
            break  # no step helps any more: rounding
        while True:
            trial = beta - share * step
            moved = design.predictor(trial)
            reached = loss(moved, trial)
            enough = size < POLISHING or reached <= best - 0.25 * share * promise
            if enough or share < SMALLEST_HALVING:
                break
            share /= 2
        if not enough and reached > best:
            break
        beta, eta, best, length = trial, moved, reached, share * size
        if promise <= tolerance * total:
            break
    rate = expit(eta)
    return Optimum(beta, best, design.curvature(weights * rate * (1.0 - rate)) + precision)


def polished(
    design: Regressors, rates: Array, weights: Array, *, centre: Array, precision: Array, start: Array
) -> Array:
    """Return the optimum from a start that is nearly there: a few plain Newton steps, each exact."""
    beta, total = start, float(weights.sum())
    for _ in range(NEARLY_THERE):
        gradient, curvature = precision @ (beta - centre), precision
        for first in range(0, len(rates), BLOCK):
            rows = slice(first, first + BLOCK)
            slope, bend = _sums(design.part(rows), rates[rows], weights[rows], beta)
            gradient, curvature = gradient + slope, curvature + bend
        step = np.linalg.solve(curvature, gradient)
        beta = beta - step
        if gradient @ step <= GAIN_LEFT * total:
            break
    return beta


def _sums(design: Design, rates: Array, weights: Array, beta: Array) -> tuple[Array, Array]:
    """Return what some levels add to the gradient and to the curvature."""
    from scipy.special import expit

    rate = expit(design.predictor(beta))
    return design.gradient(weights * (rate - rates)), design.curvature(weights * rate * (1.0 - rate))
