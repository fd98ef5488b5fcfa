"""Shifts of the logit per level of several columns, each column with its own amount of shrinkage.

logit q = a + b l + sum over columns of u[level] (+ v[level] (l - mean) / deviation), u ~ N(0, tau^2) within a
column; a and b are shrunk toward 0 and 1. Each deviation tau has an exponential prior, which prefers none
(the penalized-complexity prior of Simpson et al. 2017): without it a dozen columns that say little add up
to harm below a thousand records. The precisions are found by Fellner and Schall's iteration (Wood & Fasiolo
2017 give its derivation); setting the derivative of the evidence with the prior to 0 gives precision =
(effective number of coefficients + rate * tau) / their sum of squares. Columns that say nothing get a large
precision, and shifts of nearly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.parallel import dot
from calibrant.results import Array

Codes = npt.NDArray[np.int64]

WEAKEST, STRONGEST = 1e-2, 1e8  # limits of a precision
FIRST = 100.0
RATE = 6.0  # of the prior of a column's deviation, which is 1 / 6 on average
RATE_OF_LINE = 1.0  # the same for intercept and slope
ROUNDS, STEPS = 60, 25  # at most: of the precisions, and of Newton's method for each
NEXT_TO_NOTHING = 0.1  # effective coefficients of a column
STILL = 1e-2  # change of the logarithm of every precision below which the iteration ends
TOLERANCE = 1e-8  # of a Newton step


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The levels of one column: the level of each record (-1 for none), and what it is multiplied by."""

    codes: Codes
    levels: int
    values: Array | None = None

    def taken(self, coefficients: Array) -> Array:
        """Return what a block adds to the logit of each record."""
        extended = np.append(coefficients, 0.0)  # no level: nothing is added
        added = extended[self.codes]
        return added if self.values is None else added * self.values


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """The coefficients of one block, their standard errors, and the precision of their prior."""

    values: Array
    errors: Array
    precision: float


@dataclass(frozen=True, slots=True, eq=False)
class HierarchicalFit:
    """Intercept and slope of the logit, the precisions of their priors, and the shifts of every block."""

    intercept: float
    slope: float
    prior: tuple[float, float]
    blocks: tuple[Shifts, ...]


def hierarchical(logit: Array, outcome: Array, weight: Array, blocks: Sequence[Block]) -> HierarchicalFit:
    """Fit all coefficients; intercept and slope are shrunk to 0 and 1 in the same way, each on its own."""
    work = _Work(logit, outcome, weight, blocks)
    precision = np.full(len(work.spans), FIRST)
    precision[:2] = 1.0
    beta, covariance = work.optimum(work.centre, precision)
    for _ in range(ROUNDS):
        precision, moved = work.updated(precision, beta, covariance)
        beta, covariance = work.optimum(beta, precision)
        if moved < STILL:
            break
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    collected = [Shifts(beta[s], errors[s], float(k)) for s, k in zip(work.spans, precision, strict=True)]
    prior = collected[0].precision, collected[1].precision
    return HierarchicalFit(float(beta[0]), float(beta[1]), prior, tuple(collected[2:]))


class _Work:
    """The sparse design of all coefficients, in spans: intercept, slope, then a span per block."""

    def __init__(self, logit: Array, outcome: Array, weight: Array, blocks: Sequence[Block]) -> None:
        from scipy import sparse

        n = len(logit)
        parts = [sparse.csr_matrix(np.column_stack((np.ones(n), logit)))]
        at, self.spans = 2, [slice(0, 1), slice(1, 2)]
        for block in blocks:
            known = np.flatnonzero(block.codes >= 0)
            values = np.ones(len(known)) if block.values is None else block.values[known]
            parts.append(sparse.csr_matrix((values, (known, block.codes[known])), (n, block.levels)))
            self.spans.append(slice(at, at + block.levels))
            at += block.levels
        self.outcome, self.weight = outcome, weight
        self.centre = np.zeros(at)
        self.centre[1] = 1.0
        self.design: Any = sparse.hstack(parts).tocsr()
        self.transposed: Any = self.design.T.tocsr()

    def optimum(self, beta: Array, precision: Array) -> tuple[Array, Array]:
        """Return the penalized maximum and its covariance, by Newton's method with halved steps."""
        from scipy.linalg import cho_factor, cho_solve

        penalty = np.repeat(precision, [span.stop - span.start for span in self.spans])
        loss = self._loss(beta, penalty)
        for _ in range(STEPS):
            gradient, hessian = self._derivatives(beta, penalty)
            factor = cho_factor(hessian)
            step, moved = cho_solve(factor, gradient), 0.0
            for halving in range(30):
                trial = beta - step / 2.0**halving
                after = self._loss(trial, penalty)
                if after <= loss + 1e-12 * abs(loss):
                    beta, loss, moved = trial, after, float(np.max(np.abs(step))) / 2.0**halving
                    break
            if moved < TOLERANCE:
                break
        return beta, np.asarray(cho_solve(factor, np.eye(len(beta))))

    def _loss(self, beta: Array, penalty: Array) -> float:
        eta = self.design @ beta
        fit = dot(self.weight, np.logaddexp(0.0, eta) - self.outcome * eta)
        return fit + 0.5 * float(penalty @ (beta - self.centre) ** 2)

    def _derivatives(self, beta: Array, penalty: Array) -> tuple[Array, Array]:
        from scipy.special import expit

        q = expit(self.design @ beta)
        gradient = self.transposed @ (self.weight * (q - self.outcome)) + penalty * (beta - self.centre)
        spread = np.maximum(self.weight * q * (1.0 - q), 1e-12)
        weighted = self.design.copy()
        weighted.data = weighted.data * np.repeat(spread, np.diff(weighted.indptr))
        hessian = (self.transposed @ weighted).toarray()
        hessian[np.diag_indices_from(hessian)] += penalty
        return np.asarray(gradient), hessian

    def updated(self, precision: Array, beta: Array, covariance: Array) -> tuple[Array, float]:
        """Return the next precision of each block, and the largest change of a logarithm that matters.

        Where next to nothing is left of a block, its precision may still grow, which changes nothing.
        """
        following, moved = np.empty_like(precision), 0.0
        for k, span in enumerate(self.spans):
            u = beta[span] - self.centre[span]
            effective = len(u) - precision[k] * float(np.trace(covariance[span, span]))
            prior = (RATE if k >= 2 else RATE_OF_LINE) / np.sqrt(precision[k])
            following[k] = (max(effective, 1e-6) + prior) / max(float(u @ u), 1e-12)
            following[k] = min(max(following[k], WEAKEST), STRONGEST)
            if effective > NEXT_TO_NOTHING:
                moved = max(moved, abs(float(np.log(following[k] / precision[k]))))
        return following, moved
