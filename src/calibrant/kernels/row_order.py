"""One order of the rows: by prediction, ties by a hash of everything else that is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.results import Array

Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Sorting = tuple[Rows, Array]  # the order that sorts some values, and the values in it


def ties_ordered(
    order: Rows,
    ordered: Array,
    outcome: npt.NDArray[Any],
    weight: Array | None,
    columns: Sequence[npt.NDArray[Any]],
) -> Rows:
    """Return an order that sorts predictions, with ties broken by a hash of what else is known of the rows.

    Ties are harmless to a curve, but random numbers are dealt out by position: row order must not decide
    who gets which. Rows with equal hashes are the same row.
    """
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    tied = np.append(same, False) | np.append(False, same)
    where: Any = slice(None) if tied.all() else np.flatnonzero(tied)
    rows = order[where]
    digest = _hash(np.zeros(len(rows), dtype=np.uint64), _words(outcome[rows]))
    if weight is not None:
        digest = _hash(digest, weight[rows].view(np.uint64))
    for column in columns:
        digest = _hash(digest, column[rows].astype(np.uint64))
    refined = order.copy()
    refined[where] = rows[_sorted_within(ordered[where], digest)]
    return refined


def _words(outcome: npt.NDArray[Any]) -> Words:
    return (outcome.astype(np.float64) + 0.0).view(np.uint64)


def _sorted_within(runs: Array, digest: Words) -> Rows:
    """Return the order that sorts `digest` within every run of equal entries of `runs`.

    As in `ascending`, one vectorised sort of words that hold the number of the run, the leading bits of the
    digest and the place; those that agree in the leading bits only are put right afterwards.
    """
    number = np.cumsum(np.append(False, runs[1:] != runs[:-1])).astype(np.uint64)
    width = np.uint64(max(1, int(number[-1]).bit_length()))
    low = np.uint64((1 << (len(runs) - 1).bit_length()) - 1)
    words = (number << (np.uint64(64) - width)) | (digest >> width)
    words &= ~low
    words |= np.arange(len(runs), dtype=np.uint64)
    words.sort()
    order = (words & low).view(np.int64)
    leading, found = words & ~low, digest[order]
    agree = (leading[1:] == leading[:-1]) & (found[1:] != found[:-1])
    if agree.any():
        doubtful = np.isin(leading, leading[1:][agree])
        order[doubtful] = order[doubtful][np.lexsort((found[doubtful], leading[doubtful]))]
    return order


def ascending(values: Array) -> Sorting:
    """Sort values, ties in any order; -0.0 becomes 0.0.

    In [0, 1] this is quicker than np.argsort: a word holds the leading bits of a value (whose two top bits
    are clear) and the row's number, so that one vectorised sort of words does it. Rows that agree in all
    the leading bits but not in the others, a few at most, are put right afterwards.
    """
    values = values + 0.0
    if not 0.0 <= values.min() <= values.max() <= 1.0:
        order = np.argsort(values)
        return order, values[order]
    low = np.uint64((1 << (len(values) - 1).bit_length()) - 1)
    words = values.view(np.uint64) << np.uint64(2)
    words &= ~low
    words |= np.arange(len(values), dtype=np.uint64)
    words.sort()
    words &= low
    order = words.view(np.int64)
    result = values[order]
    if np.any(result[1:] < result[:-1]):
        leading = (result.view(np.uint64) << np.uint64(2)) & ~low
        agree = leading[1:] == leading[:-1]
        where = np.flatnonzero(np.append(agree, False) | np.append(False, agree))
        right = np.lexsort((result[where], leading[where]))
        order[where], result[where] = order[where][right], result[where][right]
    return order, result


def _hash(digest: Words, item: Words) -> Words:
    """Mix one more column into the digests (the finaliser of splitmix64)."""
    mixed = (digest ^ item) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
