"""Merged levels: how far merging moves the cumulative curve of a noise, in one pass over the levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array


@compiled
def curve_moves(
    values: Array, variance: Array, squared_weights: Array, centres: Array, starts: npt.NDArray[np.intp]
) -> tuple[Array, Array, float]:
    """Integrate standard deviation and variance of the move of each cell; and how far records are moved.

    To the left of the cell's prediction the merged curve lacks what has come already; to the right it has
    the rest too early. Where the prediction lies between two levels, the larger counts for the whole gap.
    """
    areas, squares, apart = np.zeros(len(starts)), np.zeros(len(starts)), 0.0
    for cell in range(len(starts)):
        first, centre = starts[cell], centres[cell]
        end = starts[cell + 1] if cell + 1 < len(starts) else len(values)
        total, came = np.sum(variance[first:end]), 0.0
        for j in range(first, end):
            apart += squared_weights[j] * (values[j] - centre) ** 2
            if j + 1 == end:
                break  # between cells nothing moves
            came += variance[j]
            rest = max(0.0, total - came)
            moved = rest if values[j] >= centre else came
            if values[j] < centre < values[j + 1]:
                moved = max(came, rest)
            gap = values[j + 1] - values[j]
            areas[cell] += gap * np.sqrt(moved)
            squares[cell] += gap * moved
    return areas, squares, apart
