"""Which piece of a map a prediction falls into, for millions of predictions at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

Places = npt.NDArray[np.intp]

BLOCK = 2**14  # predictions at a time: what is computed on the way stays in the cache
CELLS = 8  # of the grid, per cut
FEWEST = 16  # predictions per cut, and
LEAST = 2**12  # in all, from which a grid repays being made


def block_by_block(work: Callable[[Array], Array], p: Array) -> Array:
    """Return what `work` makes of each number, computed block by block."""
    if len(p) <= BLOCK:
        return work(p)
    result = np.empty(len(p))
    for start in range(0, len(p), BLOCK):
        result[start : start + BLOCK] = work(p[start : start + BLOCK])
    return result


def finder(cuts: Array, side: Literal["left", "right"], size: int) -> Callable[[Array], Places]:
    """Return a function that finds what np.searchsorted finds, made for `size` numbers in all.

    A bisection waits for every comparison, a dozen of them per number. A grid of equal cells tells at once
    how many cuts lie in the cells before, and at most one comparison is left where a cell has one cut. Cells
    with several cuts are bisected. Which cell a number is in never falls as the number rises, whatever the
    rounding, so that a cut in another cell is on the side that its cell says.
    """

    def bisected(x: Array) -> Places:
        return np.searchsorted(cuts, x, side=side)

    if size < max(LEAST, FEWEST * len(cuts)) or len(cuts) < 2:
        return bisected
    last = CELLS * len(cuts) - 1
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = last / (cuts[-1] - cuts[0])
    if not np.isfinite(scale):
        return bisected

    def cell(x: Array) -> Any:
        place = x - cuts[0]
        place *= scale
        return np.clip(place, 0.0, last, out=place).astype(np.intp)

    home = cell(cuts)
    count = np.bincount(home, minlength=last + 1)
    before = np.cumsum(count) - count
    only = np.full(last + 1, np.inf)
    only[home] = cuts
    only[count > 1] = np.nan
    beyond = np.greater_equal if side == "right" else np.greater

    def found(x: Array) -> Places:
        k = cell(x)
        cut = only[k]
        places: Places = before[k]
        places += beyond(x, cut)
        several = np.flatnonzero(np.isnan(cut))
        if len(several):
            places[several] = bisected(x[several])
        return places

    return found
