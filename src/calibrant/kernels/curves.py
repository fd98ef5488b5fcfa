"""Functionals of many cumulative curves, one row of residuals each, in one pass that stores no curve.

For long rows compiled; otherwise, and where numba is absent, whole-array numpy gives the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import COMPILE_ABOVE, compiled
from calibrant.sums import dots

Array = npt.NDArray[np.float64]


def curve_extremes(residuals: Array) -> Array:
    """Return the minimum and the maximum of C_0 = 0, C_1, .., C_m for every row, as two columns."""
    kernel = _for(residuals, _extremes)
    if kernel is not None:
        return np.asarray(kernel(residuals))
    curve = np.cumsum(residuals, axis=1)
    return np.stack([np.minimum(curve.min(axis=1), 0.0), np.maximum(curve.max(axis=1), 0.0)], axis=1)


def two_bin_squares(residuals: Array, values: Array) -> Array:
    """Return the integral over t of C(t)^2 + (C_m - C(t))^2 for every row.

    Expanded, so that one pass serves: 2 int C^2 - 2 C_m int C + C_m^2. It is at least C_m^2 / 2, hence
    nothing cancels.
    """
    kernel = _for(residuals, _squares)
    if kernel is not None:
        return np.asarray(kernel(residuals, values))
    curve, stretch = np.cumsum(residuals, axis=1), np.diff(values, append=1.0)
    end, linear = curve[:, -1].copy(), dots(curve, stretch)
    return np.asarray(2 * (dots(np.square(curve, out=curve), stretch) - end * linear) + end**2)


def two_bin_absolutes(residuals: Array, values: Array) -> Array:
    """Return the integral over t of |C(t)| + |C_m - C(t)| for every row."""
    stretch = np.diff(values, append=1.0)
    curve = np.cumsum(residuals, axis=1)
    end = curve[:, -1].copy()
    total = dots(np.abs(curve), stretch)
    np.abs(np.subtract(end[:, None], curve, out=curve), out=curve)
    return np.asarray(total + dots(curve, stretch) + values[0] * np.abs(end))


def _for(residuals: Array, kernel: compiled[..., Array]) -> Callable[..., Array] | None:
    """Return the compiled kernel where rows are long enough to repay it and numba is there."""
    if residuals.shape[1] < COMPILE_ABOVE:
        return None
    fast = kernel.machine_code()
    return None if fast is kernel.plain else fast


@compiled
def _extremes(residuals: Array) -> Array:
    result = np.zeros((len(residuals), 2))
    for row in range(len(residuals)):
        level = 0.0
        low = 0.0
        high = 0.0
        for residual in residuals[row]:
            level += residual
            low = min(low, level)
            high = max(high, level)
        result[row, 0] = low
        result[row, 1] = high
    return result


@compiled
def _squares(residuals: Array, values: Array) -> Array:
    result = np.empty(len(residuals))
    last = len(values) - 1
    for row in range(len(residuals)):
        level = 0.0
        linear = 0.0
        square = 0.0
        for j in range(last):
            level += residuals[row, j]
            part = level * (values[j + 1] - values[j])
            linear += part
            square += level * part
        level += residuals[row, last]
        part = level * (1.0 - values[last])
        linear += part
        square += level * part
        result[row] = 2.0 * (square - level * linear) + level * level
    return result
