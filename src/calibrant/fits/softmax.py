"""Softmax maps of several classes: eta = M ln p + b, shrunk toward one temperature for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

Family = Literal["temperature", "vector", "dirichlet"]
SMALLEST = 1e-12  # probabilities are held above it before the logarithm
STEPS = 300


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxFit:
    """The matrix, the intercepts, and the penalty they were fitted with."""

    matrix: Array
    intercepts: Array
    penalty: float


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Mean penalised log loss of one family, with its exact gradient."""

    logs: Array
    labels: npt.NDArray[np.int64]
    weights: Array
    family: Family
    penalty: float

    def matrix(self, numbers: Array) -> tuple[Array, Array]:
        """Return M and b."""
        k = self.logs.shape[1]
        if self.family == "temperature":
            return np.eye(k) * numbers[0], np.zeros(k)
        if self.family == "vector":
            return np.diag(numbers[:k]), numbers[k:]
        return numbers[: k * k].reshape(k, k), numbers[k * k :]

    def start(self) -> Array:
        """Return the identity."""
        k = self.logs.shape[1]
        if self.family == "temperature":
            return np.ones(1)
        scales = np.ones(k) if self.family == "vector" else np.eye(k).ravel()
        return np.concatenate([scales, np.zeros(k)])

    def loss(self, numbers: Array) -> tuple[float, Array]:
        """Return the loss and its gradient."""
        matrix, intercepts = self.matrix(numbers)
        rates = log_softmax(self.logs @ matrix.T + intercepts)
        rows = np.arange(len(self.labels))
        share = self.weights / self.weights.sum()
        surplus = np.exp(rates)
        surplus[rows, self.labels] -= 1.0
        surplus *= share[:, None]
        slope, level = surplus.T @ self.logs, surplus.sum(axis=0)
        away = matrix - np.eye(len(matrix)) * np.trace(matrix) / len(matrix)
        value = -share @ rates[rows, self.labels]
        if self.family == "temperature":
            return float(value), np.array([np.trace(slope)])
        value += self.penalty / 2 * (np.sum(away**2) + intercepts @ intercepts)
        slope, level = slope + self.penalty * away, level + self.penalty * intercepts
        return float(value), np.concatenate(
            [np.diag(slope) if self.family == "vector" else slope.ravel(), level]
        )


def log_softmax(eta: Array) -> Array:
    """Return the logarithm of the softmax of each row."""
    shifted = eta - eta.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def softmax_fit(
    table: Array,
    labels: npt.NDArray[np.int64],
    weights: Array,
    family: Family,
    penalty: float,
    start: SoftmaxFit | None = None,
) -> SoftmaxFit:
    """Fit one family by L-BFGS from the identity, or from another fit."""
    from scipy.optimize import minimize

    problem = _Problem(np.log(np.maximum(table, SMALLEST)), labels, weights, family, penalty)
    numbers = problem.start()
    if start is not None and family != "temperature":
        scales = np.diag(start.matrix) if family == "vector" else start.matrix.ravel()
        numbers = np.concatenate([scales, start.intercepts])
    solution = minimize(
        problem.loss,
        numbers,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": STEPS, "maxfun": 20 * STEPS, "ftol": 1e-11, "gtol": 1e-7},
    )
    return SoftmaxFit(*problem.matrix(np.asarray(solution.x, dtype=np.float64)), penalty)


def softmax_rates(table: Array, matrix: Array, intercepts: Array) -> Array:
    """Return the probabilities that a fit gives to rows of other ones."""
    eta = np.log(np.maximum(table, SMALLEST)) @ matrix.T + intercepts
    return np.asarray(np.exp(log_softmax(eta)))
