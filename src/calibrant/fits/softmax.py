"""Softmax maps of several classes: eta = M ln p + b, shrunk toward one temperature for all.

They are fitted by Newton's method with conjugate gradients. Its products are small, so that no threads of a
linear algebra library are started for vectors of a hundred numbers: they cost forty times the work itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

MAX_STEPS = 100
MAX_HESSIAN_PRODUCTS = 200  # with the Hessian, per step
MAX_HALVINGS = 40
MAX_STEP_ERROR = 0.1  # how far a step may miss the exact one, far from the minimum
DAMPING = 1e-10  # added to the Hessian: where a loss is flat, steps would be without end
GRADIENT_TOLERANCE = 1e-8  # the largest part of a gradient at which the minimum is reached

Family = Literal["temperature", "vector", "dirichlet"]
MIN_PROBABILITY = 1e-12  # probabilities are held above it before the logarithm
MAX_SINGLE_THREAD_WORK = 2**18  # multiplications up to which no threads are started for a product of matrices
MIN_RELATIVE_CURVATURE = 1e-9  # of the largest curvature,
MIN_CURVATURE = 1e-12  # and in all: what bends less counts as if it bent so much
MIN_BLOCK_RECORDS = 256  # records of a block


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxFit:
    matrix: Array
    intercepts: Array
    penalty: float


def softmax_path(
    table: Array,
    labels: npt.NDArray[np.int64],
    weights: Array,
    family: Family,
    penalties: Sequence[float],
    tolerance: float = GRADIENT_TOLERANCE,
) -> Iterator[SoftmaxFit]:
    """Fit one family under each penalty in turn, from no change, and then from the fit before."""
    blocks = blocks_of(table, labels, weights)
    numbers: Array | None = None
    for penalty in penalties:
        problem = SoftmaxProblem(blocks, family, penalty)
        numbers = problem.minimum(problem.start() if numbers is None else numbers, tolerance)
        yield SoftmaxFit(*problem.matrix(numbers), penalty)


def softmax_fit(
    table: Array, labels: npt.NDArray[np.int64], weights: Array, family: Family, penalty: float
) -> SoftmaxFit:
    return next(softmax_path(table, labels, weights, family, [penalty]))


def softmax_rates(table: Array, matrix: Array, intercepts: Array) -> Array:
    eta = np.log(np.maximum(table, MIN_PROBABILITY)) @ matrix.T + intercepts
    return np.asarray(np.exp(log_softmax(eta.T)).T)


def log_softmax(eta: Array) -> Array:
    shifted = eta - eta.max(axis=0)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=0)))


@dataclass(frozen=True, slots=True, eq=False)
class ClassBlock:
    """Some records: logarithms of their probabilities (a row per class), columns of labels, and shares."""

    logs: Array
    labels: npt.NDArray[np.int64]
    shares: Array


def blocks_of(table: Array, labels: npt.NDArray[np.int64], weights: Array) -> tuple[ClassBlock, ...]:
    """Return records in blocks that are small enough for one thread; shares are weights that sum to 1."""
    logs, shares = np.log(np.maximum(table, MIN_PROBABILITY)), weights / weights.sum()
    length = max(MIN_BLOCK_RECORDS, MAX_SINGLE_THREAD_WORK // table.shape[1] ** 2)
    cuts = [slice(first, first + length) for first in range(0, len(labels), length)]
    return tuple(ClassBlock(np.ascontiguousarray(logs[cut].T), labels[cut], shares[cut]) for cut in cuts)


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    blocks: tuple[ClassBlock, ...]
    family: Family
    penalty: float

    @property
    def classes(self) -> int:
        return len(self.blocks[0].logs)

    def start(self) -> Array:
        return self.numbers(np.eye(self.classes), np.zeros(self.classes))

    def numbers(self, matrix: Array, intercepts: Array) -> Array:
        if self.family == "temperature":
            return np.array([np.trace(matrix) / len(matrix)])
        scales = np.diag(matrix) if self.family == "vector" else matrix.ravel()
        return np.concatenate([scales, intercepts])

    def matrix(self, numbers: Array) -> tuple[Array, Array]:
        k = self.classes
        if self.family == "temperature":
            return np.eye(k) * numbers[0], np.zeros(k)
        if self.family == "vector":
            return np.diag(numbers[:k]), numbers[k:]
        return numbers[: k * k].reshape(k, k), numbers[k * k :]

    def logits(self, numbers: Array, logs: Array) -> Array:
        k = len(logs)
        if self.family == "temperature":
            return np.asarray(numbers[0] * logs)
        if self.family == "vector":
            return numbers[:k, None] * logs + numbers[k:, None]
        return np.asarray(numbers[: k * k].reshape(k, k) @ logs + numbers[k * k :, None])

    def gradient_of(self, surplus: Array, logs: Array) -> Array:
        if self.family == "temperature":
            return np.array([np.sum(surplus * logs)])
        scales = (surplus * logs).sum(axis=1) if self.family == "vector" else (surplus @ logs.T).ravel()
        return np.concatenate([scales, surplus.sum(axis=1)])

    def off_center(self, numbers: Array) -> Array:
        """Return how far the numbers are from one temperature for all."""
        if self.family == "temperature":
            return np.zeros(1)
        k, from_one = self.classes, numbers.copy()
        scales = from_one[:k] if self.family == "vector" else from_one[: k * k : k + 1]
        scales -= scales.mean()
        return from_one

    def evaluate(self, numbers: Array) -> SoftmaxPoint:
        away = self.off_center(numbers)
        value, gradient, rates = self.penalty / 2 * float(away @ away), self.penalty * away, []
        for block in self.blocks:
            logarithms = log_softmax(self.logits(numbers, block.logs))
            places = (block.labels, np.arange(len(block.labels)))
            value -= float(block.shares @ logarithms[places])
            rates.append(np.exp(logarithms))
            surplus = rates[-1] * block.shares
            surplus[places] -= block.shares
            gradient = gradient + self.gradient_of(surplus, block.logs)
        return SoftmaxPoint(self, value, gradient, rates)

    def minimum(self, numbers: Array, tolerance: float = GRADIENT_TOLERANCE) -> Array:
        here = self.evaluate(numbers)
        for _ in range(MAX_STEPS):
            if np.abs(here.gradient).max() <= tolerance:
                break
            step = here.newton_step()
            slope = float(here.gradient @ step)
            if not slope < 0:
                break
            for share in 0.5 ** np.arange(MAX_HALVINGS):
                there = self.evaluate(numbers + share * step)
                if there.value <= here.value + 1e-4 * share * slope:
                    break
            else:
                break
            numbers, here = numbers + share * step, there
        return numbers

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        total = np.zeros((self.classes + 1, self.classes + 1))
        for block in self.blocks:
            terms = np.vstack((block.logs, np.ones(len(block.labels))))
            total += (terms * block.shares) @ terms.T
        return np.linalg.eigh(total)


@dataclass(frozen=True, eq=False)
class SoftmaxPoint:
    """The loss at some numbers; `rates` are the probabilities there, a row per class."""

    problem: SoftmaxProblem
    value: float
    gradient: Array
    rates: list[Array]

    def newton_step(self) -> Array:
        left = -self.gradient
        eased = self.preconditioned(left)
        size = first = float(left @ eased)
        enough = first * min(MAX_STEP_ERROR, np.sqrt(max(first, 0.0))) ** 2
        step, direction = np.zeros_like(left), eased
        for _ in range(min(MAX_HESSIAN_PRODUCTS, 2 * len(left))):
            if size <= enough:
                break
            product = self.hessian_times(direction) + DAMPING * direction
            curvature = float(direction @ product)
            step = step + size / curvature * direction
            left = left - size / curvature * product
            eased = self.preconditioned(left)
            size, before = float(left @ eased), size
            direction = eased + size / before * direction
        return step

    def hessian_times(self, direction: Array) -> Array:
        problem = self.problem
        product = problem.penalty * problem.off_center(direction)
        for block, rates in zip(problem.blocks, self.rates, strict=True):
            change = problem.logits(direction, block.logs)
            change -= (rates * change).sum(axis=0)
            product = product + problem.gradient_of(rates * change * block.shares, block.logs)
        return product

    def preconditioned(self, gradient: Array) -> Array:
        """Divide by the Hessian of records whose probabilities say nothing of their logarithms."""
        if self.problem.family != "dirichlet":
            return gradient / self._diagonal
        k, (scales, turns) = self.problem.classes, self.problem.moments
        spread, axes = self._spread
        both = np.hstack((gradient[: k * k].reshape(k, k), gradient[k * k :, None]))
        inner = axes.T @ both @ turns
        bends = np.maximum(np.outer(spread, scales), MIN_RELATIVE_CURVATURE * spread[-1] * scales[-1])
        inner /= bends + self.problem.penalty + MIN_CURVATURE
        both = axes @ inner @ turns.T
        return np.concatenate([both[:, :k].ravel(), both[:, k]])

    @cached_property
    def _diagonal(self) -> Array:
        total = np.zeros(len(self.gradient))
        for block, rates in zip(self.problem.blocks, self.rates, strict=True):
            alone = rates * (1 - rates) * block.shares
            scales = (alone * block.logs**2).sum(axis=1)
            temperature = self.problem.family == "temperature"
            total += scales.sum() if temperature else np.concatenate([scales, alone.sum(axis=1)])
        return np.asarray(
            np.maximum(total, MIN_RELATIVE_CURVATURE * total.max()) + self.problem.penalty + MIN_CURVATURE
        )

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        k = self.problem.classes
        total = np.zeros((k, k))
        for block, rates in zip(self.problem.blocks, self.rates, strict=True):
            weighted = rates * block.shares
            total += np.diag(weighted.sum(axis=1)) - weighted @ rates.T
        return np.linalg.eigh(total)
