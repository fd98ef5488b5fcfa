"""What is to be said of an interval: that there is none, or why the value lies outside it."""

from __future__ import annotations

import math

from calibrant.numerals import short

NO_INTERVAL = "too few records for an interval"
ROUNDING = 1e-12  # by which a value may miss the end of its interval


def boundless(lower: float, upper: float) -> bool:
    """Return whether every value lies in the interval: it says nothing."""
    return math.isinf(lower) and math.isinf(upper)


def about_interval(value: float, lower: float, upper: float, null_mean: float | None) -> str:
    """Say that an interval says nothing, or why the value lies outside it; nothing where neither is so.

    >>> about_interval(0.7, -math.inf, math.inf, None)
    'too few records for an interval'
    """
    if boundless(lower, upper):
        return NO_INTERVAL
    return why_outside(value, lower, upper, null_mean)


def why_outside(value: float, lower: float, upper: float, null_mean: float | None) -> str:
    """Say why a value lies outside its own interval; nothing where it does not.

    >>> why_outside(0.02, 0.0, 0.015, 0.018)
    'the value is above its interval, which leaves out what chance adds: about 0.0180'
    >>> why_outside(0.02, 0.0, 0.03, 0.018)
    ''
    """
    if lower - ROUNDING <= value <= upper + ROUNDING:
        return ""
    size = "" if null_mean is None or math.isnan(null_mean) else f": about {short(null_mean)}"
    where = "above" if value > upper else "below"
    return f"the value is {where} its interval, which leaves out what chance adds{size}"


def outside_by_merging(value: float, of_cells: float, cells: int, lower: float, upper: float) -> str:
    """Say that a value lies outside the interval of its cells because neighbouring predictions were merged.

    >>> outside_by_merging(0.02, 0.018, 2048, 0.01, 0.019)
    'the value is above the interval, which is of predictions merged into 2,048 cells: 0.0180 there'
    """
    where = "above" if value > upper else "below"
    merged = f"which is of predictions merged into {cells:,} cells: {short(of_cells)} there"
    return f"the value is {where} the interval, {merged}"
