"""The root of a function of one number, without scipy.optimize, which takes a quarter of a second to load."""

from __future__ import annotations

from collections.abc import Callable

STEPS = 200


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
