"""The Laplace quadratic form sum_ij b_i b_j exp(-|v_i - v_j| / h) in one pass, as a sum of squares.

exp(-|s - t| / h) is the covariance of a stationary Ornstein-Uhlenbeck process, whose value at v_j is d_j
times its value at v_{j-1} plus an independent innovation of variance 1 - d_j^2, d_j = exp(-gap_j / h).
Hence, with R_j = b_j + d_{j+1} R_{j+1},

    sum_ij b_i b_j exp(-|v_i - v_j| / h)  =  R_1^2 + sum_{j>1} (1 - d_j^2) R_j^2.

No term is negative and none overflows, whatever the bandwidth. The kernels work with e_j = d_j - 1, which
keeps its digits where values are close: 1 - d_j^2 = -e_j (2 + e_j).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled

Array = npt.NDArray[np.float64]


def laplace_form(values: Array, residuals: Array, bandwidth: float = 1.0) -> tuple[float, Array]:
    """Return the quadratic form of sorted, distinct `values`, and sum_j b_j exp(-|v - v_j| / h) at each v."""
    product = np.empty(len(values))
    return float(_form(residuals, _shrinkage(values, bandwidth), product)), product


def laplace_forms(values: Array, residuals: Array, bandwidth: float = 1.0) -> Array:
    """Return the quadratic form of every row of `residuals`, all on the same `values`.

    Runs without the interpreter lock once compiled, so callers may share the rows out over threads.
    """
    rows = np.ascontiguousarray(residuals)
    if not _forms_of_rows.worth_compiling(rows.size):
        return _forms_of_rows.plain(rows, _shrinkage(values, bandwidth))
    _forms_of_rows.compile_now()
    return _forms_of_rows(rows, _shrinkage(values, bandwidth))


def _shrinkage(values: Array, bandwidth: float) -> Array:
    """Return e_2 .. e_m."""
    shrinkage = np.diff(values)
    shrinkage /= -bandwidth
    return np.expm1(shrinkage, out=shrinkage)


@compiled
def _form(residuals: Array, shrinkage: Array, product: Array) -> Any:
    carried = residuals[-1]
    product[-1] = carried
    form = 0.0
    for j in range(len(shrinkage) - 1, -1, -1):
        shrink = shrinkage[j]
        form -= shrink * (2.0 + shrink) * carried * carried
        carried = residuals[j] + carried + shrink * carried
        product[j] = carried
    left = 0.0
    for j, shrink in enumerate(shrinkage):
        left += residuals[j]
        left += shrink * left
        product[j + 1] += left
    return form + carried * carried


@compiled
def _forms_of_rows(residuals: Array, shrinkage: Array) -> Array:
    forms = np.empty(len(residuals))
    for row in range(len(residuals)):
        carried = residuals[row, -1]
        form = 0.0
        for j in range(len(shrinkage) - 1, -1, -1):
            shrink = shrinkage[j]
            form -= shrink * (2.0 + shrink) * carried * carried
            carried = residuals[row, j] + carried + shrink * carried
        forms[row] = form + carried * carried
    return forms
