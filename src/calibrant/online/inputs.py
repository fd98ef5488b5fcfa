"""Checked inputs of a stream: outcomes, predictions, keys, columns, and the names of groups and segments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows
from calibrant.inputs import (
    check_same_length,
    checked_predictions,
    is_missing,
    numeric_vector,
    to_array,
    whole_number,
)
from calibrant.results import Array

MAX_ROUNDS = 10**10  # of a horizon; more would need more cells than fit in memory
MAX_BINS = 10**5
MAX_STREAM_ROUNDS = 10**15  # rounds of a stream, where any number will do
Key = str | int | None
FRACTION_HINT = "leave undecided records out with forget(key); half an outcome is none"


def checked_outcome(y: Any) -> float:
    if isinstance(y, (bool, np.bool_, int, np.integer, float, np.floating)) and y in (0, 1):
        return float(y)
    raise InvalidInputError("y", "must be 0 or 1", f"got {y!r}", FRACTION_HINT)


def checked_probability(p: Any, name: str) -> float:
    """Return a plain float in [0, 1], or refuse; numpy's scalars would slow every step."""
    if isinstance(p, (bool, np.bool_)) or not isinstance(p, (int, float, np.integer, np.floating)):
        raise InvalidInputError(name, "must be a number in [0, 1]", f"got {p!r}")
    if not 0 <= p <= 1:
        raise InvalidInputError(name, "must lie in [0, 1]", f"got {p}")
    return float(p) + 0.0  # -0.0 is 0.0


def checked_key(key: Any) -> Key:
    """Return the key as Python's text or whole number, so that a saved state gives it back unchanged."""
    if key is None or type(key) in (str, int):
        return key  # type: ignore[no-any-return]
    if isinstance(key, (np.integer, np.str_)):
        return key.item()
    raise InvalidInputError("key", "must be text or a whole number", f"got {key!r}", "use str(key)")


def checked_count(value: Any, name: str) -> int:
    return whole_number(name, value, 0, MAX_STREAM_ROUNDS)


def checked_horizon(value: Any) -> int | None:
    return None if value is None else whole_number("horizon", value, 1, MAX_ROUNDS)


def checked_bins(value: Any) -> int:
    return whole_number("bins", value, 1, MAX_BINS)


def outcome_column(y: Any) -> Array:
    if to_array(y, "y").shape == (0,):
        return np.empty(0)
    column = numeric_vector(y, "y")
    reject_rows("y", "must not be missing", column, np.isnan(column))
    reject_rows("y", "must be 0 or 1", column, (column != 0) & (column != 1), FRACTION_HINT)
    return column.astype(np.float64)


def probability_column(p: Any, outcomes: Array, name: str) -> Array:
    if len(outcomes) == 0 and to_array(p, name).shape == (0,):
        return np.empty(0)
    check_same_length(numeric_vector(p, name), outcomes, (name, "y"))
    return checked_predictions(p, name, hint="") + 0.0


def batch_ends(batches: Any, size: int, name: str = "batches") -> npt.NDArray[np.int64]:
    """Return where each batch ends; equal neighbors are one batch, and None makes every row its own."""
    if batches is None:
        return np.arange(1, size + 1, dtype=np.int64)
    labels = to_array(batches, name)
    if labels.ndim != 1:
        raise InvalidInputError(name, "must be one-dimensional", f"got shape {labels.shape}")
    check_same_length(labels, np.empty(size), (name, "y"))
    if size == 0:
        return np.empty(0, dtype=np.int64)
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    seen: set[Any] = set()
    for label in labels[np.concatenate([[0], changes])].tolist():
        if is_missing(label):
            gaps = np.array([is_missing(item) for item in labels.tolist()], dtype=bool)
            reject_rows(name, "must not be missing", labels, gaps, "name the batch of every row")
        if label in seen:  # it would be learned before it is forecast
            got, hint = f"got {label!r} in two stretches", "sort the rows by batch first"
            raise InvalidInputError(name, "must hold each batch in one stretch of rows", got, hint)
        seen.add(label)
    return np.concatenate([changes, [size]]).astype(np.int64)


MISSING = "(missing)"
EVERYBODY = "everybody"  # the group of all records


def label_name(label: Any) -> str:
    """Return the name of a label: 1, 1.0 and "1" are one group, missing is none of the texts.

    >>> label_name(1), label_name(1.0), label_name("nan"), label_name(float("nan"))
    ('1', '1', 'nan', '(missing)')
    """
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return MISSING
    if isinstance(label, float):
        return MISSING if math.isnan(label) else str(int(label)) if label.is_integer() else repr(label)
    name = str(label)
    if name == MISSING:
        rule = f"must not be the text {MISSING!r}, which is reserved for missing labels"
        raise InvalidInputError("group", rule, "got it", "rename that group")
    return name


def list_of_names(groups: Any) -> list[str]:
    """Return the different names of groups that a user lists; one text is not a list of letters."""
    single = isinstance(groups, (str, bytes)) or (isinstance(groups, np.ndarray) and groups.ndim == 0)
    if single or not isinstance(groups, Iterable):
        raise InvalidInputError("groups", "must be a list of names", f"got {groups!r}")
    names = [label_name(group) for group in groups]
    if len(set(names)) < len(names) or EVERYBODY in names:
        rule = f"must be different names other than {EVERYBODY!r}"
        raise InvalidInputError("groups", rule, f"got {names}")
    return names


def rows_by_name(labels: Any, outcomes: Array, subjects: tuple[str, str]) -> dict[str, list[int]]:
    """Return the rows of each group, the groups in the order in which they come."""
    names = label_names(labels)
    check_same_length(names, outcomes, subjects)
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names.tolist()):
        rows.setdefault(name, []).append(row)
    return rows


def label_names(labels: Any) -> npt.NDArray[Any]:
    if isinstance(labels, np.ma.MaskedArray):
        absent, labels = np.ma.getmaskarray(labels), labels.data.astype(object)
        labels[absent] = None
    column = np.asarray(labels) if hasattr(labels, "dtype") else np.array([*labels, None], object)[:-1]
    if column.ndim != 1:
        raise InvalidInputError("groups", "must be one-dimensional", f"got shape {column.shape}")
    labels = column.tolist()
    try:
        names = [*map(lru_cache(None, typed=True)(label_name), labels)]  # 1 and True are different labels
    except TypeError:  # a label that cannot be hashed
        names = [*map(label_name, labels)]
    return np.array(names, dtype=object)
