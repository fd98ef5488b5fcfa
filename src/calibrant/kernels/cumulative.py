"""Functionals of many cumulative curves, one row of residuals each; the Laplace form; lines and knots."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.kernels.partitions import Floats
from calibrant.parallel import dots
from calibrant.results import Array


def curve_extremes(residuals: Array) -> Array:
    """Return the minimum and the maximum of C_0 = 0, C_1, .., C_m for every row, as two columns."""
    curve = np.cumsum(residuals, axis=1)
    return np.stack([np.minimum(curve.min(axis=1), 0.0), np.maximum(curve.max(axis=1), 0.0)], axis=1)


def two_bin_integrals(residuals: Array, values: Array, norm: int) -> Array:
    """Return the integral over t of |C(t)|^norm + |C_m - C(t)|^norm, norm 1 or 2, for every row."""
    stretch, curve = np.diff(values, append=1.0), np.cumsum(residuals, axis=1)
    end = curve[:, -1].copy()
    if norm == 2:  # expanded, so that one pass serves; it is at least C_m^2 / 2, hence nothing cancels
        linear = dots(curve, stretch)
        return np.asarray(2 * (dots(np.square(curve, out=curve), stretch) - end * linear) + end**2)
    total = dots(np.abs(curve), stretch)
    np.abs(np.subtract(end[:, None], curve, out=curve), out=curve)
    return np.asarray(total + dots(curve, stretch) + values[0] * np.abs(end))


def shifted_error(values: Floats, residuals: Floats, width: float) -> float:
    """Binned error with bins of one width, averaged over where they start, exactly."""
    # The mean over the shift is the integral over the left end t of |C(t + width) - C(t)| / width. It changes
    # where t or t + width passes a prediction; the stretches between are taken from predictions and width
    # apart, as an end v - width rounds to v where the width is tiny
    order = np.argsort(np.concatenate([values - width, values]), kind="stable")
    inside = np.cumsum(np.concatenate([residuals, -residuals])[order])[:-1]
    passed = order >= len(values)  # t itself is at the prediction, not t + width
    inside[np.cumsum(np.where(passed, -1, 1))[:-1] == 0] = (
        0.0  # empty: no rounding, which the width would blow up
    )
    stretch = np.diff(np.concatenate([values, values])[order]) + width * np.diff(passed.astype(np.float64))
    return float(np.abs(inside) @ stretch) / width


MIN_STRETCH = 1e-300  # of a stretch whose slope is a finite number; knots closer to a kept one are kept too


@compiled
def kept_knots(values: Array, heights: Array, tolerance: float) -> npt.NDArray[np.bool_]:
    """Return which knots to keep, so that the curve through them is within `tolerance` at all others."""
    # The slopes from a kept knot that pass within the tolerance of all later knots form a cone, which
    # narrows; the last knot that itself lies in the cone is the next to keep
    count = len(values)
    kept = np.zeros(count, dtype=np.bool_)
    kept[0] = True
    start = 0
    while start < count - 1:
        low, high, reach = -np.inf, np.inf, start + 1
        for k in range(start + 1, count):
            run = values[k] - values[start]
            if run < MIN_STRETCH:
                reach = k
                break
            slope = (heights[k] - heights[start]) / run
            if low <= slope <= high:
                reach = k
            low = max(low, slope - tolerance / run)
            high = min(high, slope + tolerance / run)
            if low > high:
                break
        kept[reach] = True
        start = reach
    return kept


def upper_envelope(intercepts: Array, slopes: Array) -> tuple[list[int], list[float]]:
    """Return the lines that are highest somewhere on [0, 1], in order, and where one takes over."""
    place, line = 0.0, int(np.lexsort((-slopes, -intercepts))[0])  # at 0 the highest, of equals the steepest
    lines, thresholds = [line], []
    while True:
        steeper = np.flatnonzero(slopes > slopes[line])
        if len(steeper) == 0:
            break
        crossing = (intercepts[line] - intercepts[steeper]) / (slopes[steeper] - slopes[line])
        first = float(crossing.min())
        if not first < 1.0:
            break
        nearest = steeper[crossing <= first]
        place, line = max(place, first), int(nearest[np.argmax(slopes[nearest])])
        lines.append(line)
        thresholds.append(place)
    return lines, thresholds


# The Laplace form sum_ij b_i b_j exp(-|v_i - v_j| / h) is a sum of squares: exp(-|s - t| / h) is the
# covariance of a stationary Ornstein-Uhlenbeck process, whose value at v_j is d_j = exp(-gap_j / h) times
# that at v_{j-1} plus an independent innovation of variance 1 - d_j^2. With R_j = b_j + d_{j+1} R_{j+1} it is
# R_1^2 + sum_{j>1} (1 - d_j^2) R_j^2: no term is negative and none overflows. The loops work with e_j = d_j -
# 1, which keeps its digits where values are close: 1 - d_j^2 = -e_j (2 + e_j).


def laplace_form(values: Array, residuals: Array, bandwidth: float = 1.0) -> tuple[float, Array]:
    """Return the quadratic form of sorted, distinct `values`, and sum_j b_j exp(-|v - v_j| / h) at each v."""
    product = np.empty(len(values))
    return float(_form(residuals, _shrinkage(values, bandwidth), product)), product


def laplace_forms(values: Array, residuals: Array, bandwidth: float = 1.0) -> Array:
    """Return the quadratic form of every row of `residuals`, all on the same `values`."""
    rows = np.ascontiguousarray(residuals)
    _forms_of_rows.prepare(rows.size)
    return _forms_of_rows(rows, _shrinkage(values, bandwidth))


def _shrinkage(values: Array, bandwidth: float) -> Array:
    """Return e_2 .. e_m."""
    shrinkage = np.diff(values)
    shrinkage /= -bandwidth
    return np.expm1(shrinkage, out=shrinkage)


@compiled
def _form(residuals: Array, shrinkage: Array, product: Array) -> Any:
    form = _carried_form(residuals, shrinkage, product)
    left = 0.0
    for j, shrink in enumerate(shrinkage):
        left += residuals[j]
        left += shrink * left
        product[j + 1] += left
    return form


def _carried_form(residuals: Array, shrinkage: Array, carried: Array) -> float:
    """Fill `carried` with R_1 .. R_m, and return the quadratic form."""
    last = residuals[-1]
    carried[-1] = last
    form = 0.0
    for j in range(len(shrinkage) - 1, -1, -1):
        shrink = shrinkage[j]
        form -= shrink * (2.0 + shrink) * last * last
        last = residuals[j] + last + shrink * last
        carried[j] = last
    return float(form + last * last)


@compiled
def _forms_of_rows(residuals: Array, shrinkage: Array) -> Array:
    forms, carried = np.empty(len(residuals)), np.empty(residuals.shape[1])
    for row in range(len(residuals)):
        forms[row] = _carried_form(residuals[row], shrinkage, carried)
    return forms
