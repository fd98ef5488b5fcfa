"""Wilson's interval of a rate, for a group of which only means and a deviation are known."""

from __future__ import annotations

import math

REACH = 1.959964  # deviations: the 95 % interval of a normal law
ROUNDING = 1e-12


def wilson(predicted: float, happened: float, sigma: float, half: float) -> tuple[float, float]:
    """Return the interval of happened - predicted, where sigma is the deviation if predictions are right.

    The variance of a rate r is taken for sigma^2 r (1 - r) / (q (1 - q)), q being the mean prediction. `half`
    is half of what one record counts (Newcombe 1998, Two-sided confidence intervals for the single
    proportion, method 4). Means that are no rates have the interval of the normal law.

    >>> low, high = wilson(0.5, 81 / 263, math.sqrt(0.25 / 263), 0.5 / 263)
    >>> round(0.5 + low, 4), round(0.5 + high, 4)
    (0.2535, 0.3682)
    """
    gap = happened - predicted
    if not all(ROUNDING <= mean <= 1 - ROUNDING for mean in (predicted,)) or not 0 <= happened <= 1:
        return gap - REACH * sigma, gap + REACH * sigma
    spread = REACH**2 * sigma**2 / (predicted * (1 - predicted))
    low = wilson_end(max(happened - half, 0.0), spread, -1.0)
    high = wilson_end(min(happened + half, 1.0), spread, 1.0)
    return min(gap, low - predicted), max(gap, high - predicted)


def wilson_end(rate: float, spread: float, side: float) -> float:
    """Solve (rate - r)^2 = spread r (1 - r) for the r on this side of the rate."""
    middle = 2 * rate + spread
    root = math.sqrt(max(middle**2 - 4 * (1 + spread) * rate**2, 0.0))
    return min(max((middle + side * root) / (2 * (1 + spread)), 0.0), 1.0)
