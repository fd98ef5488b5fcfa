"""Logistic maps (shift, temperature, Platt, beta), shrunk toward no change, and logistic regression.

The maps are logit q = g + a ln c - b ln(1 - c) with c the clipped prediction: shift has a = b = 1,
temperature g = 0 and a = b, Platt a = b, beta a, b >= 0. The prior is Gaussian around the identity
(a = b = 1, g = 0); its width, and where predictions are clipped, are chosen by the evidence.

The regression on columns has scikit-learn's default ridge on every coefficient but the intercept; numbers are
divided by their largest absolute value, and a missing or new category adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.fits.levels import (
    CLIPS,
    MIN_CLIP,
    Levels,
    end_limit,
    expit,
    held,
    logit,
    outcome_limits,
    pooled,
    worthwhile_clips,
)
from calibrant.parallel import dot
from calibrant.results import Array

MAX_NEWTON_STEPS = 100
MIN_STEP_FACTOR = 2.0**-40
MAX_POLISHING_STEP = 1e-4  # shorter steps are judged by the gradient, which has twice the digits of the loss
MAX_PLAIN_STEPS = 4  # plain steps from a good start
GAIN_TOLERANCE = 1e-12  # of the total weight: coefficients are then off by 1e-6, or its square after a step
BLOCK = 2**13  # levels at a time: they stay in the cache, and products of them on one thread


class Design(Protocol):
    """How coefficients become a linear predictor, and the two sums that Newton's method needs."""

    def predictor(self, beta: Array) -> Array: ...  # eta, one number per level
    def gradient(self, surplus: Array) -> Array: ...  # X' surplus
    def curvature(self, spread: Array) -> Array: ...  # X' diag(spread) X


@dataclass(frozen=True, slots=True, eq=False)
class Regressors:
    columns: tuple[Array, ...]
    offset: Array | float = 0.0

    def part(self, rows: slice) -> Regressors:
        offset = self.offset[rows] if isinstance(self.offset, np.ndarray) else self.offset
        return Regressors(tuple(column[rows] for column in self.columns), offset)

    def predictor(self, beta: Array) -> Array:
        eta = self.columns[0] * beta[0] + self.offset
        for column, coefficient in zip(self.columns[1:], beta[1:], strict=True):
            eta = eta + coefficient * column
        return np.asarray(eta)

    def gradient(self, surplus: Array) -> Array:
        return np.array([dot(column, surplus) for column in self.columns])

    def curvature(self, spread: Array) -> Array:
        spreads = [column * spread for column in self.columns]
        return np.array([[dot(left, right) for right in self.columns] for left in spreads])


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    beta: Array
    loss: float
    curvature: Array

    def evidence(self, precision: Array) -> float:
        prior, posterior = np.log(precision).sum(), np.linalg.slogdet(self.curvature)[1]
        return float(-self.loss + 0.5 * prior - 0.5 * posterior)


def minimize_loss(
    design: Design,
    rates: Array,
    weights: Array,
    *,
    center: Array,
    precision: Array,
    start: Array | None = None,
    tolerance: float = 1e-15,
    steps: int = MAX_NEWTON_STEPS,
) -> Optimum:
    """Minimize sum w (ln(1 + e^eta) - r eta) + sum P (beta - center)^2 / 2 by Newton's method."""

    def loss(eta: Array, beta: Array) -> float:
        away = beta - center
        return dot(weights, np.logaddexp(0.0, eta) - rates * eta) + 0.5 * float(precision @ away**2)

    total = float(weights.sum())
    beta = (center if start is None else start).astype(np.float64)
    eta = design.predictor(beta)
    best, length = loss(eta, beta), np.inf
    for _ in range(steps):
        rate = expit(eta)
        gradient = design.gradient(weights * (rate - rates)) + precision * (beta - center)
        curvature = design.curvature(weights * rate * (1.0 - rate)) + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        promise, size, share = float(gradient @ step), float(np.abs(step).max()), 1.0
        if promise <= 0 or (size < MAX_POLISHING_STEP and not size < length / 2):
            break  # no step helps any more: rounding
        while True:
            trial = beta - share * step
            moved = design.predictor(trial)
            reached = loss(moved, trial)
            enough = size < MAX_POLISHING_STEP or reached <= best - 0.25 * share * promise
            if enough or share < MIN_STEP_FACTOR:
                break
            share /= 2
        if not enough and reached > best:
            break
        beta, eta, best, length = trial, moved, reached, share * size
        if promise <= tolerance * total:
            break
    rate = expit(eta)
    return Optimum(beta, best, design.curvature(weights * rate * (1.0 - rate)) + np.diag(precision))


def polished(
    design: Regressors, rates: Array, weights: Array, *, center: Array, precision: Array, start: Array
) -> Array:
    """Return the optimum from a start that is nearly there: a few plain Newton steps, each exact."""
    beta, total = start, float(weights.sum())
    for _ in range(MAX_PLAIN_STEPS):
        gradient, curvature = precision * (beta - center), np.diag(precision)
        for first in range(0, len(rates), BLOCK):
            rows = slice(first, first + BLOCK)
            part, weight = design.part(rows), weights[rows]
            rate = expit(part.predictor(beta))
            gradient = gradient + part.gradient(weight * (rate - rates[rows]))
            curvature = curvature + part.curvature(weight * rate * (1.0 - rate))
        step = np.linalg.solve(curvature, gradient)
        beta = beta - step
        if gradient @ step <= GAIN_TOLERANCE * total:
            break
    return beta


Family = Literal["shift", "temperature", "platt", "beta"]
Shrink = Literal["auto"] | float | None
Clip = Literal["auto"] | float

CELLS = 4096  # of the logit, in which many levels are pooled before the last, exact steps
WIDTHS = np.geomspace(10.0, 1e-3, 28)  # of the prior, from weak to strong
COARSE_STRIDE = 4  # of this many widths one is tried at first; then the best is climbed to
MIN_PRIOR_PRECISION = 1e-9  # precision of the prior that keeps split outcomes finite without shrinkage
MIN_SCALE = 1e-3
ROUNDING = 1e-12  # relative differences between logits that rounding may have made
CENTERS = {"shift": (0.0,), "temperature": (1.0,), "platt": (0.0, 1.0), "beta": (0.0, 1.0, 1.0)}


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """logit q = intercept + low ln c - high ln(1 - c), c the prediction held within [clip, 1 - clip]."""

    intercept: float
    low: float
    high: float
    clip: float
    width: float  # of the prior around no change; infinite without one
    limits: tuple[float, float] = (0.0, 1.0)  # q is scaled to them


def logistic(levels: Levels, family: Family, *, shrink: Shrink = "auto", clip: Clip = "auto") -> LogisticFit:
    """Fit one family by penalized maximum likelihood; `shrink` is the width of the prior, None for none."""
    if shows_no_slope(levels):
        family = "shift"
    clips = worthwhile_clips(levels) if clip == "auto" else (checked_clip(clip),)
    limit = end_limit(levels) if clip == "auto" else 0.0
    widths = _widths(shrink)
    logits = logit(levels.values, clips[0])
    cells = pooled(logits, levels, CELLS)
    best = _Trial(cells, family, clips[0], widths)
    best.climb(range(0, len(widths), COARSE_STRIDE), limit)
    for each in clips[1:]:
        trial = _Trial(cells, family, each, widths)
        trial.climb([best.peak], limit)  # the width hardly depends on the clip
        if trial.evidence > best.evidence + 1e-9:
            best = trial
    found = best.finished(levels, held(logits, best.clip))
    single = levels.rates.max() == 0 or levels.rates.min() == 1
    if shrink != "auto" or (family == "shift" and not single):  # a shift of two outcomes has its limits
        return found
    return replace(found, limits=outcome_limits(levels))


def closest_to_certain(logits: Array) -> float:
    return float(expit(-np.abs(logits[[0, -1]])).min())


def shows_no_slope(levels: Levels) -> bool:
    low, high = logit(levels.values[[0, -1]], CLIPS[0])
    return bool(high - low <= ROUNDING * max(1.0, abs(low), abs(high)))


def _widths(shrink: Shrink) -> Sequence[float]:
    if shrink is None:
        return [np.inf]
    if shrink == "auto":
        return list(WIDTHS)
    if isinstance(shrink, bool) or not isinstance(shrink, (int, float)) or not 0 < shrink < np.inf:
        rule = 'must be "auto", None or a positive width of the prior'
        raise InvalidInputError("shrink", rule, f"got {shrink!r}")
    return [float(shrink)]


def checked_clip(clip: object) -> float:
    if isinstance(clip, bool) or not isinstance(clip, (int, float)) or not MIN_CLIP <= clip < 0.5:
        rule = f'must be "auto" or a number from {MIN_CLIP:g} to below 0.5'
        raise InvalidInputError("clip", rule, f"got {clip!r}")
    return float(clip)


class _Trial:
    """One clip: the prior's width by evidence, on pooled levels; `finished` then fits all of them exactly."""

    def __init__(
        self, pooled_levels: tuple[Array, Levels], family: Family, clip: float, widths: Sequence[float]
    ) -> None:
        self.family, self.clip = family, clip
        self.center = np.array(CENTERS[family])
        logits, self.cells = pooled_levels
        self.places = held(logits, clip)
        self.design = _design(self.places, family, range(len(self.center)))
        weights = self.cells.weights  # root mean squares: how far a change of a coefficient by 1 moves logits
        squares = [float(weights @ column**2 / weights.sum()) for column in self.design.columns]
        self.scales = np.maximum(np.sqrt(squares), MIN_SCALE)
        self.widths, self.known = widths, dict[int, float]()
        self.start: Array | None = None
        self.peak, self.evidence, self.best = 0, -np.inf, self.center

    def climb(self, starts: Sequence[int], limit: float) -> None:
        """Climb to the width with the largest evidence; a map closer to 0 or 1 than the limit has none."""
        for start in starts:
            self._try(start)
        peak = -1
        while self.peak != peak:
            peak = self.peak
            for near in (peak - 2, peak - 1, peak + 1, peak + 2):
                if 0 <= near < len(self.widths):
                    self._try(near)
        if self.clip < limit and closest_to_certain(self.design.predictor(self.best)) < limit:
            self.evidence = -np.inf

    def _try(self, place: int) -> None:
        if place in self.known:
            return
        width = self.widths[place]
        precision = self._precision(width)
        fitted = minimize_loss(
            self.design, self.cells.rates, self.cells.weights,
            center=self.center, precision=precision, start=self.start, tolerance=1e-9,
        )  # fmt: skip
        self.start = fitted.beta
        self.known[place] = fitted.evidence(precision) if np.isfinite(width) else -fitted.loss
        if self.known[place] > self.evidence:
            self.peak, self.evidence, self.best = place, self.known[place], fitted.beta

    def _precision(self, width: float) -> Array:
        strength = MIN_PRIOR_PRECISION if np.isinf(width) else width**-2
        return np.asarray(self.scales**2 * strength)

    def finished(self, levels: Levels, logits: Array) -> LogisticFit:
        """Return the fit on all levels at the chosen width; negative powers of beta are held at 0."""
        free = list(range(len(self.center)))
        beta = self._exact(levels, logits, free)
        while self.family == "beta" and (negative := [k for k in free if k > 0 and beta[k] < 0]):
            free.remove(min(negative, key=lambda k: beta[k] * self.scales[k]))
            beta = self._exact(levels, logits, free)
        intercept = 0.0 if self.family == "temperature" else float(beta[0])
        low, high = (1.0, 1.0) if self.family == "shift" else (float(beta[-1]), float(beta[-1]))
        if self.family == "beta":
            low = float(beta[1])
        return LogisticFit(intercept, low, high, self.clip, float(self.widths[self.peak]))

    def _exact(self, levels: Levels, logits: Array, free: list[int]) -> Array:
        precision = self._precision(self.widths[self.peak])[free]
        start, center = self.best[free], self.center[free]
        if len(free) < len(self.center):
            cells = self.cells
            design = _design(self.places, self.family, free)
            start = minimize_loss(design, cells.rates, cells.weights, center=center, precision=precision).beta
        design = _design(logits, self.family, free)
        beta = np.zeros(len(self.center))
        beta[free] = polished(
            design, levels.rates, levels.weights, center=center, precision=precision, start=start
        )
        return beta


def _design(logits: Array, family: Family, free: Sequence[int]) -> Regressors:
    one = np.ones(len(logits))
    if family == "shift":
        return Regressors((one,), offset=logits)
    if family == "temperature":
        return Regressors((logits,))
    if family == "platt":
        return Regressors((one, logits))
    columns = (one, -np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits))
    return Regressors(tuple(columns[k] for k in free))


TOLERANCE = 1e-8  # of the gradient, per record
MAX_LINEAR_STEPS = 2_000
MAX_FLOAT = float(np.finfo(np.float64).max)
MAX_SCALED = 1e6  # multiples of the largest number seen that count


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """An intercept, and the coefficients of every column: one for a number, one per code for categories."""

    intercept: float
    coefficients: tuple[Array, ...]
    scales: tuple[float | None, ...]  # what numbers are divided by; None for categories

    def predict(self, rows: Array) -> Array:
        total = np.full(len(rows), self.intercept)
        for j, (coefficients, scale) in enumerate(zip(self.coefficients, self.scales, strict=True)):
            codes, values = _terms(rows[:, j], scale, len(coefficients))
            total += np.append(coefficients, 0.0)[codes] * values
        return total

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], features: int) -> Linear:
        try:
            columns = tuple(np.array(column, dtype=np.float64) for column in stored["coefficients"])
            scales = tuple(None if scale is None else float(scale) for scale in stored["scales"])
            intercept = float(stored["intercept"])
            fits = [
                column.ndim == 1 and (scale is None or (len(column) == 1 and 0 < scale < np.inf))
                for column, scale in zip(columns, scales, strict=True)
            ]
            finite = bool(np.isfinite([intercept, *np.concatenate(columns)]).all())
            usable = finite and len(fits) == features and all(fits)
        except (KeyError, TypeError, ValueError):
            usable = False
        if not usable:
            raise InvalidInputError("a linear model", f"must have {features} columns of numbers")
        return cls(intercept, columns, scales)


def logistic_regression(rows: Array, outcome: Array, weight: Array, categorical: Sequence[int]) -> Linear:
    from scipy import sparse
    from scipy.optimize import minimize

    n, parts, scales = len(rows), list[Any](), list[float | None]()
    for j, column in enumerate(rows.T):
        known = column[np.isfinite(column)]
        scale = None if j in set(categorical) else float(np.max(np.abs(known), initial=0.0)) or 1.0
        width = int(known.max(initial=-1.0)) + 1 if scale is None else 1
        codes, values = _terms(column, scale, width)
        inside = np.flatnonzero(codes < width)
        parts.append(sparse.csr_matrix((values[inside], (inside, codes[inside])), (n, width)))
        scales.append(scale)
    design = sparse.hstack(parts).tocsr()

    def cost(beta: Array) -> tuple[float, Array]:
        eta = beta[0] + design @ beta[1:]
        pull = weight * (expit(eta) - outcome)
        gradient = np.append(pull.sum(), design.T @ pull + beta[1:])
        return float(weight @ (np.logaddexp(0.0, eta) - outcome * eta) + beta[1:] @ beta[1:] / 2), gradient

    steps = {"maxiter": MAX_LINEAR_STEPS, "maxfun": 2 * MAX_LINEAR_STEPS}
    options: Any = {"gtol": TOLERANCE * n, "ftol": 0.0, **steps}
    beta = minimize(cost, np.zeros(1 + design.shape[1]), jac=True, method="L-BFGS-B", options=options).x
    ends = np.cumsum([1, *(part.shape[1] for part in parts)])
    columns = tuple(beta[start:stop] for start, stop in pairwise(ends))
    return Linear(float(beta[0]), columns, tuple(scales))


def _terms(column: Array, scale: float | None, width: int) -> tuple[Any, Array]:
    """Return which coefficient each value takes (`width` for none), and what it is multiplied by."""
    absent = np.isnan(column)
    if scale is not None:
        inside = np.clip(np.where(absent, 0.0, column), -MAX_FLOAT, MAX_FLOAT)
        with np.errstate(over="ignore"):
            scaled = inside / scale
        return np.where(absent, width, 0), np.clip(scaled, -MAX_SCALED, MAX_SCALED)
    codes = np.where(absent, width, column).astype(np.int64)
    return np.minimum(codes, width), np.ones(len(column))
