"""Everything that a few rounds can bring: all outcomes with their chances, and all ways to pool rounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

Labels = npt.NDArray[np.intp]  # the block of each round

ALL_POOLS = 6  # rounds up to which every set partition is tried: there are 203 of 6, and 877 of 7


def all_outcomes(n: int) -> Array:
    """Return the 2^n outcomes of n rounds, one per row."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def chances(outcomes: Array, truth: Array) -> Array:
    """Return the probability of each row of outcomes when round i is 1 with probability truth[i]."""
    return np.asarray(np.prod(np.where(outcomes == 1, truth, 1 - truth), axis=1))


def pools(n: int) -> list[Labels]:
    """Return the ways to pool n rounds, coarsest first: all of them, or for many rounds the plain ones.

    Reports that agree in some rounds are a face of the cube that a gradient never finds, so the search
    visits each face. For more than 6 rounds: all together, all apart, and neighbours pooled in the order
    given.
    """
    if n <= ALL_POOLS:
        labels = sorted(_set_partitions(n), key=max)
    else:
        labels = [tuple(k * i // n for i in range(n)) for k in range(1, n + 1)]
    return [np.array(label, dtype=np.intp) for label in labels]


def _set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield each set partition of n rounds as the block of every round, blocks numbered as they appear."""
    if n == 1:
        yield (0,)
        return
    for head in _set_partitions(n - 1):
        for block in range(max(head) + 2):
            yield (*head, block)
