"""Rows with equal predictions, merged into levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.records import Records
from calibrant.results import Array


def merged_labels(y: npt.NDArray[Any], p: Array) -> dict[str, Any]:
    """Sort and merge unweighted 0/1 data by one vectorised sort of exact integer keys.

    A float64 in [0, 1] has its two top bits clear, so (bits << 1) | y orders by prediction, then outcome.
    """
    n = len(p)
    key = (p + 0.0).view(np.uint64)  # + 0.0 copies, and turns -0.0 into 0.0
    np.left_shift(key, np.uint64(1), out=key)
    np.bitwise_or(key, y.astype(np.uint8), out=key)
    key.sort()
    ones = key.astype(np.uint8) & np.uint8(1)
    np.right_shift(key, np.uint64(1), out=key)
    changes = key[1:] != key[:-1]
    if changes.all():
        return {
            "values": key.view(np.float64),
            "outcomes": ones / float(n),
            "counts": np.ones(n, dtype=np.int64),
            "n": n,
            "record_weights": None,
            "record_outcomes": None,
        }
    starts = _after(changes)
    return {
        "values": key[starts].view(np.float64),
        "outcomes": np.add.reduceat(ones, starts, dtype=np.int64) / n,
        "counts": np.diff(starts, append=n),
        "n": n,
        "record_weights": None,
        "record_outcomes": None,
    }


def merged_records(records: Records, binary: bool) -> dict[str, Any]:
    """Merge records in canonical order, so that every sum is the same in its last digit for any row order."""
    n, weight, outcome = len(records), records.weight, records.outcome
    starts = _after(records.prediction[1:] != records.prediction[:-1])
    merged = {"values": records.prediction[starts], "counts": np.diff(starts, append=n), "n": n}
    if not records.weighted:
        sums = np.add.reduceat(outcome, starts)
        kept = None if binary else outcome
        return {**merged, "outcomes": sums / n, "record_weights": None, "record_outcomes": kept}
    weight = weight / weight.sum()
    product = weight * outcome
    outcomes = np.add.reduceat(product, starts)
    np.multiply(weight, weight, out=product)  # fresh memory costs more than the product
    return {
        **merged,
        "outcomes": outcomes,
        "weights": np.add.reduceat(weight, starts),
        "squared_weights": np.add.reduceat(product, starts),
        "record_weights": weight,
        "record_outcomes": outcome,
    }


def _after(changes: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return where each run of equal entries begins: at 0, and after every change."""
    return np.concatenate(([0], np.flatnonzero(changes) + 1))
