"""Roots of functions of one number, by scipy; imported when one is needed."""

from __future__ import annotations

from collections.abc import Callable

STEPS = 200


def root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return where the function changes sign between `low` and `high` (in either order), to `tolerance`.

    Rounding can hide the change of sign; then the end where the function is closer to 0 is the root.

    >>> round(root(lambda x: x**3 - 2, 0.0, 2.0, 1e-12), 9)
    1.25992105
    """
    from scipy.optimize import brentq

    try:
        found: float = brentq(function, low, high, xtol=tolerance, maxiter=STEPS)
    except ValueError:
        at_low, at_high = function(low), function(high)
        if not at_low * at_high > 0.0:  # something else went wrong, such as NaN
            raise
        return low if abs(at_low) < abs(at_high) else high
    return found
