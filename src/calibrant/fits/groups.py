"""Groups of records: shifts of the logit per level of columns, shrunk together, and patches.

Of several columns, each with its own amount of shrinkage:
logit q = a + b l + sum over columns of u[level] (+ v[level] (l - mean) / deviation), u ~ N(0, tau^2) within a
column; a and b are shrunk toward 0 and 1. Each deviation tau has an exponential prior, which prefers none
(the penalized-complexity prior of Simpson et al. 2017): without it a dozen columns that say little add up
to harm below a thousand records. The precisions are found by Fellner and Schall's iteration (Wood & Fasiolo
2017 give its derivation); setting the derivative of the evidence with the prior to 0 gives precision =
(effective number of coefficients + rate * tau) / their sum of squares. Columns that say nothing get a large
precision, and shifts of nearly 0.

A patch shifts the logit of one group and range of scores at a time (Hébert-Johnson et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import expit
from calibrant.fits.logistic import minimize_loss
from calibrant.parallel import dot
from calibrant.results import Array

Codes = npt.NDArray[np.int64]

MIN_PRECISION, MAX_PRECISION = 1e-2, 1e8  # limits of a precision
START_PRECISION = 100.0
COLUMN_PRIOR_RATE = 6.0  # of the prior of a column's deviation, which is 1 / 6 on average
LINE_PRIOR_RATE = 1.0  # the same for intercept and slope
MAX_ROUNDS = 60  # of the precisions
MIN_EFFECTIVE_COEFFICIENTS = 0.1  # effective coefficients of a column
PRECISION_TOLERANCE = 1e-2  # change of the logarithm of every precision below which the iteration ends
TOLERANCE = 1e-15  # gain of a Newton step per record
LOOSE_TOLERANCE = 1e-5  # the same while precisions still move; what such a step leaves is about its square


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    codes: Codes
    levels: int
    values: Array | None = None

    def taken(self, coefficients: Array) -> Array:
        extended = np.append(coefficients, 0.0)  # no level: nothing is added
        added = extended[self.codes]
        return added if self.values is None else added * self.values


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    values: Array
    errors: Array
    precision: float


@dataclass(frozen=True, slots=True, eq=False)
class HierarchicalFit:
    intercept: float
    slope: float
    prior: tuple[float, float]
    blocks: tuple[Shifts, ...]


def hierarchical(logit: Array, outcome: Array, weight: Array, blocks: Sequence[Block]) -> HierarchicalFit:
    """Fit all coefficients; intercept and slope are shrunk to 0 and 1 in the same way, each on its own."""
    work = _Work(logit, outcome, weight, blocks)
    precision = np.full(len(work.spans), START_PRECISION)
    precision[:2] = 1.0
    beta, variances = work.optimum(work.center, precision, LOOSE_TOLERANCE)
    for _ in range(MAX_ROUNDS):
        precision, moved = work.updated(precision, beta, variances)
        if moved < PRECISION_TOLERANCE:
            break
        beta, variances = work.optimum(beta, precision, LOOSE_TOLERANCE)
    beta, variances = work.optimum(beta, precision, TOLERANCE)
    errors = np.sqrt(variances)
    collected = [Shifts(beta[s], errors[s], float(k)) for s, k in zip(work.spans, precision, strict=True)]
    prior = collected[0].precision, collected[1].precision
    return HierarchicalFit(float(beta[0]), float(beta[1]), prior, tuple(collected[2:]))


class _Work:
    """The design in spans (intercept, slope, then a span per block), whose products are sums by level."""

    def __init__(self, logit: Array, outcome: Array, weight: Array, blocks: Sequence[Block]) -> None:
        self.logit, self.outcome, self.weight, self.blocks = logit, outcome, weight, blocks
        ends = np.cumsum([0, 1, 1, *(block.levels for block in blocks)]).tolist()
        self.spans = [slice(first, last) for first, last in pairwise(ends)]
        self.center = np.zeros(ends[-1])
        self.center[1] = 1.0
        self.codes = [np.where(block.codes < 0, block.levels, block.codes) for block in blocks]

    def optimum(self, beta: Array, precision: Array, tolerance: float) -> tuple[Array, Array]:
        """Return the coefficients and their variances."""
        penalty = np.repeat(precision, [span.stop - span.start for span in self.spans])
        fitted = minimize_loss(
            self, self.outcome, self.weight,
            center=self.center, precision=penalty, start=beta, tolerance=tolerance,
        )  # fmt: skip
        return fitted.beta, np.asarray(np.linalg.inv(fitted.curvature).diagonal())

    def predictor(self, beta: Array) -> Array:
        eta = np.asarray(beta[0] + beta[1] * self.logit)
        for block, span in zip(self.blocks, self.spans[2:], strict=True):
            eta += block.taken(beta[span])
        return eta

    def gradient(self, surplus: Array) -> Array:
        sums = [self._sums(j, surplus) for j in range(len(self.blocks))]
        return np.concatenate(([surplus.sum(), dot(self.logit, surplus)], *sums))

    def curvature(self, spread: Array) -> Array:
        steep, hessian = spread * self.logit, np.zeros((len(self.center), len(self.center)))
        hessian[0, 0], hessian[0, 1], hessian[1, 1] = spread.sum(), steep.sum(), dot(self.logit, steep)
        for j, (block, span) in enumerate(zip(self.blocks, self.spans[2:], strict=True)):
            hessian[0, span], hessian[1, span] = self._sums(j, spread), self._sums(j, steep)
            mixed = spread if block.values is None else spread * block.values
            inside = np.arange(span.start, span.stop)
            hessian[inside, inside] = self._sums(j, mixed)
            for k in range(j):
                hessian[self.spans[2 + k], span] = self._joint_sums(k, j, mixed)
        hessian += np.triu(hessian, 1).T
        return hessian

    def _sums(self, j: int, numbers: Array) -> Array:
        block = self.blocks[j]
        scaled = numbers if block.values is None else numbers * block.values
        return np.asarray(np.bincount(self.codes[j], scaled, block.levels + 1)[:-1], dtype=np.float64)

    def _joint_sums(self, k: int, j: int, numbers: Array) -> Array:
        one, other = self.blocks[k], self.blocks[j]
        both = self.codes[k] * (other.levels + 1) + self.codes[j]
        scaled = numbers if one.values is None else numbers * one.values
        sums = np.bincount(both, scaled, (one.levels + 1) * (other.levels + 1)).astype(np.float64)
        return sums.reshape(one.levels + 1, other.levels + 1)[:-1, :-1]

    def updated(self, precision: Array, beta: Array, variances: Array) -> tuple[Array, float]:
        """Return the next precision of each block, and the largest change of a logarithm that matters."""
        following, moved = np.empty_like(precision), 0.0
        for k, span in enumerate(self.spans):
            u = beta[span] - self.center[span]
            effective = len(u) - precision[k] * float(variances[span].sum())
            prior = (COLUMN_PRIOR_RATE if k >= 2 else LINE_PRIOR_RATE) / np.sqrt(precision[k])
            following[k] = (max(effective, 1e-6) + prior) / max(float(u @ u), 1e-12)
            following[k] = min(max(following[k], MIN_PRECISION), MAX_PRECISION)
            if effective > MIN_EFFECTIVE_COEFFICIENTS:
                moved = max(moved, abs(float(np.log(following[k] / precision[k]))))
        return following, moved


RANGES = 10  # of scores, of equal mass; all scores together are one more
STEP = 0.7  # of the Newton step
RIDGE = 10.0  # added to the variance
MIN_VARIANCE = 5.0  # of a cell that may be patched
MIN_Z = 2.5
MAX_STALE_STEPS = 10  # steps without a better held-out loss
MAX_PATCHES = 200


@dataclass(frozen=True, slots=True)
class Patch:
    """A shift of the logit of one group, by number, for scores in [low, high)."""

    group: int
    low: float
    high: float
    shift: float
    z: float  # before the patch

    def to_dict(self) -> list[float]:
        return [self.group, self.low, self.high, self.shift, self.z]


def applied(logit: Array, members: npt.NDArray[np.bool_], patch: Patch) -> Array:
    q = expit(logit)
    inside = members & (q >= patch.low) & (q < patch.high)
    return np.asarray(logit + patch.shift * inside)


def patched(
    logit: Array,
    outcome: Array,
    weight: Array,
    members: npt.NDArray[np.bool_],
    held_out: npt.NDArray[np.bool_],
) -> list[Patch]:
    """Patch the cell of largest |z| again and again; keep what the held-out records support."""
    inner = np.unique(np.quantile(expit(logit), np.arange(1, RANGES) / RANGES))
    edges = np.concatenate(([0.0], inner, [1.0 + 1e-9]))
    fitted = weight * ~held_out
    places = [np.flatnonzero(inside) for inside in members]
    patches: list[Patch] = []
    best, kept = _loss(logit, outcome, weight * held_out), 0
    while len(patches) < MAX_PATCHES and len(patches) - kept < MAX_STALE_STEPS:
        patch = _worst(expit(logit), outcome, fitted, places, edges)
        if patch is None:
            break
        logit = applied(logit, members[patch.group], patch)
        patches.append(patch)
        loss = _loss(logit, outcome, weight * held_out)
        if loss < best - 1e-7:
            best, kept = loss, len(patches)
    return patches[:kept]


def _loss(logit: Array, outcome: Array, weight: Array) -> float:
    total = float(weight.sum())
    return float(weight @ (np.logaddexp(0.0, logit) - outcome * logit)) / total if total > 0 else 0.0


def _worst(
    score: Array, outcome: Array, weight: Array, places: Sequence[npt.NDArray[np.intp]], edges: Array
) -> Patch | None:
    cell = np.searchsorted(edges, score, side="right") - 1
    count = len(edges) - 1
    residual, variance = weight * (outcome - score), weight * weight * score * (1.0 - score)
    spread = weight * score * (1.0 - score)
    sums = np.zeros((3, len(places), count + 1))
    for k, inside in enumerate(places):
        for row, numbers in enumerate((residual, variance, spread)):
            sums[row, k, :count] = np.bincount(cell[inside], numbers[inside], count)
    sums[:, :, count] = sums.sum(axis=2)  # all scores
    total, squares, curvature = sums
    z = np.where(curvature > MIN_VARIANCE, total / np.sqrt(np.maximum(squares, 1e-300)), 0.0)
    group, at = np.unravel_index(int(np.argmax(np.abs(z))), z.shape)
    if abs(z[group, at]) < MIN_Z:
        return None
    low, high = (edges[0], edges[-1]) if at == count else (edges[at], edges[at + 1])
    shift = STEP * total[group, at] / (curvature[group, at] + RIDGE)
    return Patch(int(group), float(low), float(high), float(shift), float(z[group, at]))
