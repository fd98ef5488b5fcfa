"""How far curves can go inside the cells of a sketch, for every part of a partition at once."""

from __future__ import annotations

import numpy as np

from calibrant.kernels.compiled import compiled
from calibrant.kernels.segments import Index
from calibrant.results import Array


@compiled
def strata_extremes(part: Index, terms: Array, within: Array, extremes: Array) -> None:
    """Widen the highest and lowest point of each part's curve to what is possible inside its cells.

    A row of `terms` holds value, weight and residual of an entry, entries of one cell sharing a value. A row
    of `within` holds its positive and negative residuals, and its least and largest prediction. A part's cell
    of one prediction has no inside.
    """
    parts = len(extremes)
    value_of, before, curve = np.full(parts, np.nan), np.zeros(parts), np.zeros(parts)
    under, over = np.zeros(parts), np.zeros(parts)
    low, high = np.full(parts, np.inf), np.full(parts, -np.inf)
    for i in range(len(part)):
        k = part[i]
        if terms[i, 0] != value_of[k]:
            if high[k] > low[k]:
                extremes[k, 0] = max(extremes[k, 0], before[k] + under[k])
                extremes[k, 1] = min(extremes[k, 1], before[k] - over[k])
            value_of[k], before[k] = terms[i, 0], curve[k]
            under[k], over[k], low[k], high[k] = 0.0, 0.0, np.inf, -np.inf
        curve[k] += terms[i, 2]
        under[k] += within[i, 0]
        over[k] += within[i, 1]
        low[k] = min(low[k], within[i, 2])
        high[k] = max(high[k], within[i, 3])
    for k in range(parts):
        if high[k] > low[k]:
            extremes[k, 0] = max(extremes[k, 0], before[k] + under[k])
            extremes[k, 1] = min(extremes[k, 1], before[k] - over[k])
