"""Logistic regression on columns of numbers and of categories, with a ridge on every coefficient but one.

The ridge is that of scikit-learn's default (half the sum of squares beside the sum of the losses), numbers
are divided by their largest absolute value, categories have one coefficient each, and what is missing or was
never seen adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.results import Array

TOLERANCE = 1e-8  # of the gradient, per record
STEPS = 2_000
LARGEST = float(np.finfo(np.float64).max)
FARTHEST = 1e6  # multiples of the largest number seen that count


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """An intercept, and the coefficients of every column: one for a number, one per code for categories."""

    intercept: float
    columns: tuple[Array, ...]
    scales: tuple[float | None, ...]  # what numbers are divided by; None for categories

    def predict(self, rows: Array) -> Array:
        """Return the logit of each row."""
        total = np.full(len(rows), self.intercept)
        for j, (coefficients, scale) in enumerate(zip(self.columns, self.scales, strict=True)):
            codes, values = _terms(rows[:, j], scale, len(coefficients))
            total += np.append(coefficients, 0.0)[codes] * values
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON."""
        columns = [column.tolist() for column in self.columns]
        return {"intercept": self.intercept, "coefficients": columns, "scales": list(self.scales)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], features: int) -> Linear:
        """Read back what `to_dict` wrote; what is not a model of this many features is refused."""
        try:
            columns = tuple(np.array(column, dtype=np.float64) for column in stored["coefficients"])
            scales = tuple(None if scale is None else float(scale) for scale in stored["scales"])
            made = cls(float(stored["intercept"]), columns, scales)
        except (KeyError, TypeError, ValueError):
            made = cls(np.nan, (), ())
        finite = np.isfinite([made.intercept, *(scale for scale in made.scales if scale is not None)]).all()
        shaped = all(column.ndim == 1 and np.isfinite(column).all() for column in made.columns)
        single = all(
            scale is None or (len(column) == 1 and scale > 0)
            for column, scale in zip(made.columns, made.scales, strict=False)
        )
        right = len(made.columns) == len(made.scales) == features
        if not (finite and shaped and single and right):
            raise InvalidInputError(sentence("a linear model", f"must have {features} columns of numbers"))
        return made


def logistic_regression(rows: Array, outcome: Array, weight: Array, categorical: Sequence[int]) -> Linear:
    """Fit an intercept and all coefficients at once."""
    from scipy import sparse
    from scipy.optimize import minimize
    from scipy.special import expit

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

    options: Any = {"gtol": TOLERANCE * n, "ftol": 0.0, "maxiter": STEPS, "maxfun": 2 * STEPS}
    beta = minimize(cost, np.zeros(1 + design.shape[1]), jac=True, method="L-BFGS-B", options=options).x
    ends = np.cumsum([1, *(part.shape[1] for part in parts)])
    columns = tuple(beta[start:stop] for start, stop in pairwise(ends))
    return Linear(float(beta[0]), columns, tuple(scales))


def _terms(column: Array, scale: float | None, width: int) -> tuple[Any, Array]:
    """Return which coefficient each value takes (`width` for none), and what it is multiplied by."""
    absent = np.isnan(column)
    if scale is not None:
        inside = np.clip(np.where(absent, 0.0, column), -LARGEST, LARGEST)
        with np.errstate(over="ignore"):
            scaled = inside / scale
        return np.where(absent, width, 0), np.clip(scaled, -FARTHEST, FARTHEST)
    codes = np.where(absent, width, column).astype(np.int64)
    return np.minimum(codes, width), np.ones(len(column))
