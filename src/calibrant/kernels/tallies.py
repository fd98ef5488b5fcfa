"""Tallies of picked rows: how often each cell of each model was drawn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled

Codes = npt.NDArray[np.int32]


@compiled
def tallies(picked: npt.NDArray[np.uint32], codes: Codes, size: int) -> npt.NDArray[np.int64]:
    """Count the codes (below `size`) of the picked rows; `codes` has a row per row and a column per model."""
    counts = np.zeros((codes.shape[1], size), dtype=np.int64)
    for row in picked:
        for model in range(codes.shape[1]):
            counts[model, codes[row, model]] += 1
    return counts
