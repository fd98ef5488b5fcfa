"""The best fit whose slope is neither negative nor steep, by the slope trick.

Let F_i(t) be the least cost of the first i levels if the fit ends at g_i = t. Half its derivative is
continuous, increasing and linear between breakpoints, with its zero at m_i. Going to the next level, whose
fit may be larger by 0 to d, inserts a flat piece of length d at the zero; adding w (t - r) then moves the
zero to one side. Breakpoints left of the zero lie on one stack, those right of it on another, which is
shifted lazily; walking to the new zero moves breakpoints from one stack to the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Floats = npt.NDArray[np.float64]


@compiled
def bounded_slope_rates(values: Floats, rates: Floats, weights: Floats, slope: float) -> Floats:
    """Return g with least sum w (g - r)^2 subject to 0 <= g_{i+1} - g_i <= slope (v_{i+1} - v_i).

    Exact up to rounding. A walk passes n^(1/3) breakpoints on average on random outcomes, and at most of the
    order of sqrt(n), on outcomes that alternate between 0 and 1.
    """
    count = len(values)
    left_at, left_change = np.empty(2 * count), np.empty(2 * count)
    right_at, right_change = np.empty(2 * count), np.empty(2 * count)
    left, right, shift = 0, 0, 0.0
    zeros = np.empty(count)
    zero, steep = rates[0], weights[0]
    zeros[0] = zero
    for i in range(1, count):
        room = slope * (values[i] - values[i - 1])
        shift += room
        left_at[left], left_change[left] = zero, steep
        right_at[right], right_change[right] = zero + room - shift, steep
        left, right = left + 1, right + 1
        weight, target = weights[i], rates[i]
        if target < zero:
            zero, steep, left, right = _walked(
                left_at, left_change, left, 0.0, right_at, right_change, right, shift,
                weight * (zero - target), zero, weight, -1.0,
            )  # fmt: skip
        elif target > zero + room:
            place = zero + room
            zero, steep, right, left = _walked(
                right_at, right_change, right, shift, left_at, left_change, left, 0.0,
                weight * (target - place), place, weight, 1.0,
            )  # fmt: skip
        else:
            zero, steep = target, weight
        zeros[i] = zero
    return _read_back(values, zeros, slope)


@compiled
def _walked(
    near_at: Floats, near_change: Floats, near: int, near_shift: float,
    far_at: Floats, far_change: Floats, far: int, far_shift: float,
    need: float, place: float, weight: float, toward: float,
) -> tuple[float, float, int, int]:  # fmt: skip
    """Walk from `place`, where half the derivative is `need` off zero, to its zero.

    Return the zero, the slope there, and the heights of the stack walked into and of the one left behind.
    """
    steep = weight
    while near > 0:
        stop = near_at[near - 1] + near_shift
        gap = toward * (stop - place)
        if steep * gap >= need:
            break
        if gap > 0.0:
            need -= steep * gap
            place = stop
        near -= 1
        far_at[far], far_change[far] = place - far_shift, -near_change[near]
        far += 1
        steep = max(steep + near_change[near], weight)  # never less than the weight, but for rounding
    return place + toward * need / steep, steep, near, far


@compiled
def _read_back(values: Floats, zeros: Floats, slope: float) -> Floats:
    """Return the fit from the best last value backwards: each as near to its own zero as the next allows."""
    fit = zeros.copy()
    for i in range(len(values) - 2, -1, -1):
        room = slope * (values[i + 1] - values[i])
        fit[i] = min(max(zeros[i], fit[i + 1] - room), fit[i + 1])
    return fit
