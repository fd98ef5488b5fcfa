"""Sums of the members of one group, by cells of neighbouring predictions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.kernels.segments import Index
from calibrant.results import Array

COUNT, PREDICTED, EVENTS = range(3)  # columns of the sums


def member_sums(members: Index, cell: npt.NDArray[np.int32], prediction: Array, outcome: Array) -> Array:
    """Return how many of the members each cell has, and the sums of their predictions and outcomes.

    Cells of the records ascend.
    """
    sums = np.zeros((int(cell[-1]) + 1, 3))
    _add_members(members, cell, prediction, outcome, sums)
    return sums.T


@compiled
def _add_members(
    members: Index, cell: npt.NDArray[np.int32], prediction: Array, outcome: Array, sums: Array
) -> None:
    for i in members:
        to = sums[cell[i]]
        to[COUNT] += 1.0
        to[PREDICTED] += prediction[i]
        to[EVENTS] += outcome[i]
