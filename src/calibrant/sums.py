"""Sums of products without BLAS, whose threads cost more than they save and fight with everybody else's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.results import Array


def dot(one: Array, other: npt.NDArray[np.floating | np.integer]) -> float:
    """Return the sum of the products, added in pairs (the rounding error grows with log n only).

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.sum(one * other))


def dots(rows: Array, other: Array) -> Array:
    """Return the sum of the products with `other` for every row."""
    return np.asarray(np.einsum("ij,j->i", rows, other))
