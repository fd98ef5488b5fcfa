"""Checked columns of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.inputs import array_of, check_same_length, check_unit_interval, is_gap, numeric_vector
from calibrant.online.single_values import FRACTION
from calibrant.results import Array


def outcome_column(y: Any) -> Array:
    """Return a column of outcomes, all 0 or 1; it may be empty."""
    if array_of(y, "y").shape == (0,):
        return np.empty(0)
    column = numeric_vector(y, "y")
    if column.dtype.kind == "f":
        reject_rows("y", "must not be missing", column, np.isnan(column))
    reject_rows("y", "must be 0 or 1", column, (column != 0) & (column != 1), FRACTION)
    return column.astype(np.float64)


def probability_column(p: Any, outcomes: Array, name: str) -> Array:
    """Return a column of probabilities as long as the outcomes."""
    if len(outcomes) == 0 and array_of(p, name).shape == (0,):
        return np.empty(0)
    column = numeric_vector(p, name)
    check_same_length(column, outcomes, (name, "y"))
    if column.dtype.kind == "f":
        reject_rows(name, "must not be missing", column, np.isnan(column))
    check_unit_interval(column, name)
    return column.astype(np.float64) + 0.0


def batch_ends(batches: Any, size: int, name: str = "batches") -> npt.NDArray[np.int64]:
    """Return where each batch ends; equal neighbours are one batch, and None makes every row its own.

    A label that comes back after others have come would be learnt before it is forecast: refused.
    """
    if batches is None:
        return np.arange(1, size + 1, dtype=np.int64)
    labels = array_of(batches, name)
    if labels.ndim != 1:
        raise InvalidInputError(sentence(name, "must be one-dimensional", f"got shape {labels.shape}"))
    check_same_length(labels, np.empty(size), (name, "y"))
    if size == 0:
        return np.empty(0, dtype=np.int64)
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    seen: set[Any] = set()
    for label in labels[np.concatenate([[0], changes])].tolist():
        if is_gap(label):
            gaps = np.array([is_gap(item) for item in labels.tolist()], dtype=bool)
            reject_rows(name, "must not be missing", labels, gaps, "name the batch of every row")
        if label in seen:
            rule = "must hold each batch in one stretch of rows"
            hint = "sort the rows by batch first"
            raise InvalidInputError(sentence(name, rule, f"got {label!r} in two stretches", hint))
        seen.add(label)
    return np.concatenate([changes, [size]]).astype(np.int64)
