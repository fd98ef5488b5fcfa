"""Maps of predictions in one pass over a column: threads need not wait for each other between the steps."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array

Places = npt.NDArray[np.intp]
CELLS = 8  # of the grid, per cut


def grid_of(cuts: Array) -> tuple[Places, float, float]:
    """Return how many cuts lie before each of some equal cells, where the first begins, and cells per unit.

    Which cell a number is in never falls as the number rises, whatever the rounding.
    """
    cells = CELLS * len(cuts)
    origin = float(cuts[0])
    with np.errstate(divide="ignore", over="ignore"):
        scale = float((cells - 1) / (cuts[-1] - cuts[0]))
    if not math.isfinite(scale):
        scale = 0.0
    home = np.clip((cuts - origin) * scale, 0.0, cells - 1).astype(np.intp)
    count = np.bincount(home, minlength=cells)
    return np.cumsum(count) - count, origin, scale


def _first(x: float, before: Places, origin: float, scale: float) -> int:
    """Return how many cuts lie in cells before that of x."""
    return before[int(min(max((x - origin) * scale, 0.0), len(before) - 1.0))]  # type: ignore[no-any-return]


def _rate(logit: float) -> float:
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1.0 + odds)


@compiled
def logistic_column(p: Array, intercept: float, low: float, high: float, clip: float, out: Array) -> None:
    """Fill the column of a logistic map."""
    for i in range(len(p)):
        c = min(max(p[i], clip), 1.0 - clip)
        out[i] = _rate(intercept + low * math.log(c) - high * math.log1p(-c))


@compiled
def linear_column(
    p: Array, cuts: Array, before: Places, origin: float, scale: float, pieces: Array, out: Array
) -> None:
    """Fill the column of a map that is linear between cuts; `pieces` has base, slope, height and limits."""
    for i in range(len(p)):
        x = p[i]
        k = _first(x, before, origin, scale)
        while k < len(cuts) and cuts[k] <= x:
            k += 1
        height = (x - pieces[0, k]) * pieces[1, k] + pieces[2, k]
        out[i] = min(max(height, pieces[3, k]), pieces[4, k])


@compiled
def spline_column(p: Array, cuts: Array, pieces: Array, clip: float, out: Array) -> None:
    """Fill the column of a map that shifts logits, linearly between few cuts."""
    for i in range(len(p)):
        c = min(max(p[i], clip), 1.0 - clip)
        x = math.log(c) - math.log1p(-c)
        k = np.searchsorted(cuts, x, side="right")
        height = (x - pieces[0, k]) * pieces[1, k] + pieces[2, k]
        out[i] = _rate(x + min(max(height, pieces[3, k]), pieces[4, k]))


@compiled
def pair_column(
    p: Array, cuts: Array, before: Places, origin: float, scale: float, rates: Array, out: Array
) -> None:
    """Fill the column of a map by gaps between cuts (`rates[0]`) and at them (`rates[1]`)."""
    for i in range(len(p)):
        x = p[i]
        k = _first(x, before, origin, scale)
        while k < len(cuts) and cuts[k] < x:
            k += 1
        out[i] = rates[1, k] if k < len(cuts) and cuts[k] == x else rates[0, k]
