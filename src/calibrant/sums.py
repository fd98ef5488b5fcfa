"""Sums of products without BLAS, whose threads cost more than they save and fight with everybody else's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

AT_ONCE = 2**15  # terms that are held at a time: they stay in the cache, and need no new pages of memory


def dot(one: Array, other: npt.NDArray[np.floating | np.integer]) -> float:
    """Return the sum of the products, added in pairs (the rounding error grows with log n only).

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return summed(lambda part: one[part] * other[part], len(one))


def summed(terms: Callable[[slice], Array], count: int) -> float:
    """Return the sum of `count` terms; `terms` computes any part of them.

    Long sums are cut where np.sum would, so that the result is that of ``np.sum(terms(slice(count)))`` to
    the bit; but millions of terms are never written to memory and read again.

    >>> summed(lambda part: np.arange(10.0)[part] ** 2, 10)
    285.0
    """

    def between(start: int, stop: int) -> float:
        if stop - start <= AT_ONCE:
            return float(np.add.reduce(terms(slice(start, stop))))  # np.sum without its overhead
        half = (stop - start) // 2
        middle = start + half - half % 8
        return between(start, middle) + between(middle, stop)

    return between(0, count)


def largest(terms: Callable[[slice], Array], count: int) -> float:
    """Return the largest of `count` terms; `terms` computes any part of them."""
    starts = range(0, count, AT_ONCE)
    return max(float(terms(slice(start, min(start + AT_ONCE, count))).max()) for start in starts)


def running(terms: Array) -> Array:
    """Return the sums of the first 0, 1, ..., m terms."""
    sums = np.empty(len(terms) + 1)
    sums[0] = 0.0
    np.cumsum(terms, out=sums[1:])
    return sums


def dots(rows: Array, other: Array) -> Array:
    """Return the sum of the products with `other` for every row."""
    return np.asarray(np.einsum("ij,j->i", rows, other))
