"""The rows of the user, checked once and put in one global order that does not depend on row order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, reject_rows, sentence
from calibrant.inputs import (
    check_same_length,
    check_unit_interval,
    check_weights,
    missing_rows,
    vector,
)
from calibrant.kernels.segments import Index, Words
from calibrant.results import Array

Rows = npt.NDArray[np.int64]
Sorting = tuple[Rows, Array]  # the order that sorts some values, and the values in it


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Prediction, outcome and weight (largest 1) of every kept row, in global order.

    `rows` says where each came from, `length` how long the user's columns are.
    """

    rows: Rows
    prediction: Array
    outcome: Array
    weight: Array
    length: int
    dropped: int

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: Index) -> Records:
        """Return some of the records, in the same order."""
        return Records(
            self.rows[which],
            self.prediction[which],
            self.outcome[which],
            self.weight[which],
            self.length,
            self.dropped,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """The user's rows after checking, still in their own order; no `weight` where all weigh the same."""

    rows: Rows
    prediction: Array
    outcome: Array
    weight: Array | None
    length: int
    dropped: int


def check(
    y_true: Any, y_prob: Any, sample_weight: Any, missing: Literal["error", "drop"], real: bool
) -> Checked:
    """Check outcome, prediction and weight; leave out rows of weight 0 and, if asked, rows with a gap."""
    if missing not in ("error", "drop"):
        raise reject_name("missing", missing, ["error", "drop"])
    y, p = vector(y_true, "y_true"), vector(y_prob, "y_prob")
    w = None if sample_weight is None else vector(sample_weight, "sample_weight")
    check_same_length(y, p, ("y_true", "y_prob"))
    if w is not None:
        check_same_length(w, p, ("sample_weight", "y_prob"))
    absent = missing_rows(y, p, w)
    if absent is not None and missing == "error":
        hint = 'pass missing="drop" to leave such rows out and have them counted'
        for array, name in ((y, "y_true"), (p, "y_prob"), (w, "sample_weight")):
            if array is not None:
                reject_rows(name, "must not be missing", array, array != array, hint)
    length, rows = len(p), np.arange(len(p))
    if absent is not None:
        rows = np.flatnonzero(~absent)
        y, p, w = y[rows], p[rows], None if w is None else w[rows]
        if len(rows) == 0:
            found = f"got {length:,} rows, all with one"
            raise InvalidInputError(sentence("y_prob", "must have a row without missing values", found))
    dropped = length - len(rows)
    _check_ranges(y, p, real)
    weight = None if w is None else check_weights(w, "sample_weight")
    if weight is not None:
        positive = weight > 0
        rows, y, p, weight = rows[positive], y[positive], p[positive], weight[positive] / weight.max()
    outcome, prediction = y.astype(np.float64), np.add(p, 0.0, dtype=np.float64)  # turns -0.0 into 0.0
    return Checked(rows, prediction, outcome, weight, length, dropped)


def _check_ranges(y: npt.NDArray[Any], p: npt.NDArray[Any], real: bool) -> None:
    if real:
        reject_rows("y_true", "must be finite", y, ~np.isfinite(y))
        reject_rows("y_prob", "must be finite", p, ~np.isfinite(p))
        return
    check_unit_interval(y, "y_true")
    check_unit_interval(p, "y_prob")
    if y.dtype.kind in "biu":
        return  # whole numbers in [0, 1]
    hint = 'pass variant="real" for responses that are not 0 or 1'
    reject_rows("y_true", "must be 0 or 1", y, (y != 0) & (y != 1), hint)


def put_in_order(checked: Checked, sorting: Sorting, columns: Sequence[npt.NDArray[Any]]) -> Records:
    """Sort by prediction; break ties by everything else that is known of a row.

    `sorting` is that of the predictions alone.
    Ties are harmless to the curve, but simulated outcomes are dealt out by position. So that row order
    changes nothing at all, tied rows stand in the order of a hash of their outcome, weight and `columns`
    (covariate codes, masks): rows with equal hashes are the same row.
    """
    order, ordered = sorting
    same = ordered[1:] == ordered[:-1]
    if same.any():
        tied = np.concatenate((same, [False])) | np.concatenate(([False], same))
        where = np.flatnonzero(tied)
        rows = order[where]
        digest = _hash(np.zeros(len(rows), dtype=np.uint64), checked.outcome[rows].view(np.uint64))
        weight = np.ones(1) if checked.weight is None else checked.weight[rows]
        digest = _hash(digest, weight.view(np.uint64))
        for column in columns:
            digest = _hash(digest, column[checked.rows[rows]].astype(np.uint64))
        order[where] = rows[np.lexsort((digest, ordered[where]))]
    return Records(
        order if len(order) == checked.length else checked.rows[order],
        ordered,
        checked.outcome[order],
        np.broadcast_to(1.0, len(order)) if checked.weight is None else checked.weight[order],
        checked.length,
        checked.dropped,
    )


def ascending(values: Array) -> Sorting:
    """Sort values, ties in any order.

    In [0, 1] this is quicker than np.argsort: a word holds the leading bits of a value (whose two top bits
    are clear) and the row's number, so that one vectorised sort of words does it. Rows that agree in all
    the leading bits but not in the others, a few at most, are put right afterwards.
    """
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
    found = values[order]
    if np.any(found[1:] < found[:-1]):
        leading = (found.view(np.uint64) << np.uint64(2)) & ~low
        agree = leading[1:] == leading[:-1]
        where = np.flatnonzero(np.append(agree, False) | np.append(False, agree))
        right = np.lexsort((found[where], leading[where]))
        order[where], found[where] = order[where][right], found[where][right]
    return order, found


def _hash(digest: Words, item: Words) -> Words:
    """Mix one more column into the digests (the finaliser of splitmix64)."""
    mixed = (digest ^ item) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
