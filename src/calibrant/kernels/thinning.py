"""Fewest knots of a piecewise linear curve within a tolerance, by a greedy cone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Floats = npt.NDArray[np.float64]
SHORTEST = 1e-300  # of a stretch whose slope is a finite number; knots closer to a kept one are kept too


@compiled
def kept_knots(values: Floats, heights: Floats, tolerance: float) -> npt.NDArray[np.bool_]:
    """Return which knots to keep, so that the curve through them is within `tolerance` at all others.

    From a kept knot the slopes that pass within the tolerance of all later knots form a cone, which narrows;
    the last knot that itself lies in the cone is the next to keep.
    """
    count = len(values)
    kept = np.zeros(count, dtype=np.bool_)
    kept[0] = True
    start = 0
    while start < count - 1:
        low, high, reach = -np.inf, np.inf, start + 1
        for k in range(start + 1, count):
            run = values[k] - values[start]
            if run < SHORTEST:
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
