"""The root of a function of one number, without scipy.optimize, which takes a quarter of a second to load."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

STEPS = 200
ROUNDING = 4 * sys.float_info.epsilon  # of a root, relative to it
Point = tuple[float, float]  # a place, and the function there


def root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return where the function changes sign between `low` and `high` (in either order), to `tolerance`.

    Secant steps of the Illinois method (Dowell and Jarratt 1971); every third step bisects, so that the
    bracket shrinks whatever the function does.

    >>> round(root(lambda x: x**3 - 2, 0.0, 2.0, 1e-12), 9)
    1.25992105
    """
    at_low, at_high = function(low), function(high)
    if at_low == 0.0 or at_high == 0.0:
        return low if at_low == 0.0 else high
    for step in range(STEPS):
        if abs(high - low) <= tolerance:
            break
        middle = (low + high) / 2
        if step % 3 != 2:
            middle = (low * at_high - high * at_low) / (at_high - at_low)
            near = min(abs(high - low) / 4, tolerance / 2)  # beside the root, so that both ends close in
            middle = min(max(middle, min(low, high) + near), max(low, high) - near)
        value = function(middle)
        if value == 0.0:
            return middle
        if (value < 0.0) == (at_high < 0.0):
            high, at_high, at_low = middle, value, at_low / 2
        else:
            low, at_low, at_high = middle, value, at_high / 2
    return (low + high) / 2


def brent(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return the root between `low` and `high`, where signs differ, by Brent's method (1973).

    It takes the steps of scipy.optimize.brentq, to the last digit.

    >>> round(brent(lambda x: x**3 - 2, 0.0, 2.0, 1e-12), 9)
    1.25992105
    """
    last, here, other = low, high, low
    at_last, at_here = function(last), function(here)
    if at_last == 0.0 or at_here == 0.0:
        return last if at_last == 0.0 else here
    at_other, step_before, step = at_last, here - last, here - last
    for _ in range(STEPS):
        if (at_last < 0.0) != (at_here < 0.0):
            other, at_other, step_before, step = last, at_last, here - last, here - last
        if abs(at_other) < abs(at_here):
            last, here, other = here, other, here
            at_last, at_here, at_other = at_here, at_other, at_here
        close, half = (tolerance + ROUNDING * abs(here)) / 2, (other - here) / 2
        if at_here == 0.0 or abs(half) < close:
            break
        tried = _interpolated((last, at_last), (here, at_here), (other, at_other))
        if (
            abs(step_before) > close
            and abs(at_here) < abs(at_last)
            and 2 * abs(tried) < min(abs(step_before), 3 * abs(half) - close)
        ):
            step_before, step = step, tried
        else:
            step_before, step = half, half
        last, at_last = here, at_here
        here += step if abs(step) > close else (close if half > 0 else -close)
        at_here = function(here)
    return here


def _interpolated(last: Point, here: Point, other: Point) -> float:
    """Return the step to where a line, or a hyperbola through three points, would be 0; inf without one."""
    (x, at_x), (at, value), (z, at_z) = last, here, other
    if x == z:
        return -value * (at - x) / (value - at_x) if value != at_x else math.inf
    from_x, from_z = (at_x - value) / (x - at), (at_z - value) / (z - at)
    below = from_z * from_x * (at_z - at_x)
    return -value * (at_z * from_z - at_x * from_x) / below if below else math.inf
