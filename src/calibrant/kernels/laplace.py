"""The Laplace quadratic form sum_ij b_i b_j exp(-|v_i - v_j| / h) in one pass, as a sum of squares.

exp(-|s - t| / h) is the covariance of a stationary Ornstein-Uhlenbeck process, whose value at v_j is d_j
times its value at v_{j-1} plus an independent innovation of variance 1 - d_j^2, d_j = exp(-gap_j / h).
Hence, with R_j = b_j + d_{j+1} R_{j+1},

    sum_ij b_i b_j exp(-|v_i - v_j| / h)  =  R_1^2 + sum_{j>1} (1 - d_j^2) R_j^2.

No term is negative and none overflows, whatever the bandwidth.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import COMPILE_ABOVE, compiled

Array = npt.NDArray[np.float64]


def laplace_form(values: Array, residuals: Array, bandwidth: float = 1.0) -> float:
    """Return the square of the Laplace kernel calibration error of sorted, distinct `values`."""
    decay, innovation = _process(values, bandwidth)
    carried = _carried(residuals, decay)
    np.square(carried, out=carried)
    return float(np.sum(np.multiply(innovation, carried, out=carried)))


def laplace_product(values: Array, residuals: Array, bandwidth: float = 1.0) -> Array:
    """Return sum_j b_j exp(-|v - v_j| / h) at every v in `values`."""
    decay, _ = _process(values, bandwidth)
    from_right = _carried(residuals, decay)
    from_left = _carried(residuals[::-1].copy(), decay[::-1].copy())[::-1]
    return np.asarray(from_right + from_left - residuals)


def laplace_forms(values: Array, residuals: Array, bandwidth: float = 1.0) -> Array:
    """Return `laplace_form` of every row of `residuals`, all on the same `values`.

    Runs without the interpreter lock once compiled, so callers may share the rows out over threads.
    """
    decay, innovation = _process(values, bandwidth)
    rows = np.ascontiguousarray(residuals)
    kernel = _forms_of_rows.machine_code() if rows.size >= COMPILE_ABOVE else _forms_of_rows.plain
    return kernel(rows, decay, innovation)


def _process(values: Array, bandwidth: float) -> tuple[Array, Array]:
    """Return the decays d_2 .. d_m and the variances 1, 1 - d_2^2, .. of the innovations."""
    decay = np.diff(values)
    decay /= -bandwidth
    np.expm1(decay, out=decay)  # d - 1, exact where values are close
    innovation = np.ones(len(values))
    np.multiply(-decay, 2.0 + decay, out=innovation[1:])
    decay += 1.0
    return decay, innovation


@compiled
def _carried(residuals: Array, decay: Array) -> Array:
    carried = residuals.copy()
    total = carried[-1]
    for j in range(len(decay) - 1, -1, -1):
        total = residuals[j] + decay[j] * total
        carried[j] = total
    return carried


@compiled
def _forms_of_rows(residuals: Array, decay: Array, innovation: Array) -> Array:
    forms = np.empty(len(residuals))
    for row in range(len(residuals)):
        total = residuals[row, -1]
        form = innovation[-1] * total * total
        for j in range(len(decay) - 1, -1, -1):
            total = residuals[row, j] + decay[j] * total
            form += innovation[j] * total * total
        forms[row] = form
    return forms
