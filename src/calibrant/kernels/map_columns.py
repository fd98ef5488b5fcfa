"""Maps of predictions in one pass over a column: threads need not wait for each other between the steps."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array

Places = npt.NDArray[np.int32]
CELLS = 4  # of the grid, per cut,
FEWEST = 2**12  # and in all: cells without a cut need no search


def cells_before(cuts: Array) -> tuple[Places, float, float]:
    """Return how many cuts lie before each of some equal cells, where the first begins, and cells per unit.

    Which cell a number is in never falls as the number rises, whatever the rounding.
    """
    cells = max(FEWEST, CELLS * len(cuts))
    origin = float(cuts[0])
    with np.errstate(divide="ignore", over="ignore"):
        scale = float((cells - 1) / (cuts[-1] - cuts[0]))
    if not math.isfinite(scale):
        scale = 0.0
    home = np.clip((cuts - origin) * scale, 0.0, cells - 1).astype(np.intp)
    count = np.bincount(home, minlength=cells)
    return (np.cumsum(count) - count).astype(np.int32), origin, scale


def _first(x: float, before: Places, origin: float, scale: float) -> int:
    """Return how many cuts lie in cells before that of x."""
    return before[int(min(max((x - origin) * scale, 0.0), len(before) - 1.0))]  # type: ignore[no-any-return]


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
