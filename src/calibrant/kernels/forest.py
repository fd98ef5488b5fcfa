"""The walk of many records down many trees that are kept as tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.results import Array

Places = npt.NDArray[np.int64]


@compiled
def forest_sums(
    rows: Array,
    nodes: Places,
    thresholds: Array,
    values: Array,
    bits: npt.NDArray[np.uint64],
    roots: Places,
    every: int,
    sums: Array,
) -> None:
    """Fill ``sums[i, s]`` with what the first ``(s + 1) * every`` trees add up to for record i.

    A row of `nodes` holds feature (-1 in a leaf), left and right child, whether missing goes left, and for
    categories the place and number of words of the bits of those that go left (no words: a number, which goes
    left at most at the threshold).
    """
    for i in range(len(rows)):
        total = 0.0
        for tree in range(len(roots)):
            node = roots[tree]
            while nodes[node, 0] >= 0:
                value = rows[i, nodes[node, 0]]
                words = nodes[node, 5]
                if np.isnan(value):
                    left = nodes[node, 3] == 1
                elif words == 0:
                    left = value <= thresholds[node]
                else:
                    code = int(value)
                    left = code < 64 * words
                    if left:
                        word = bits[nodes[node, 4] + code // 64]
                        left = (word >> np.uint64(code % 64)) & np.uint64(1) == np.uint64(1)
                node = nodes[node, 1] if left else nodes[node, 2]
            total += values[node]
            if (tree + 1) % every == 0:
                sums[i, (tree + 1) // every - 1] = total
