"""What a stream is handed: single outcomes, predictions and keys, and whole columns, checked at the door."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.inputs import array_of, check_same_length, check_unit_interval, vector
from calibrant.results import Array

MOST_ROUNDS = 10**10  # of a horizon: more would need more cells than anybody wants to wait for
MOST_BINS = 10**5
Key = str | int | None
FRACTION = "leave undecided records out with forget(key); half an outcome is none"


def checked_outcome(y: Any) -> float:
    """Return 0.0 or 1.0, or refuse."""
    if isinstance(y, (bool, np.bool_, int, np.integer, float, np.floating)) and y in (0, 1):
        return float(y)
    raise InvalidInputError(sentence("y", "must be 0 or 1", f"got {y!r}", FRACTION))


def checked_probability(p: Any, name: str) -> float:
    """Return a plain float in [0, 1], or refuse; numpy's scalars would slow every step."""
    if isinstance(p, (bool, np.bool_)) or not isinstance(p, (int, float, np.integer, np.floating)):
        raise InvalidInputError(sentence(name, "must be a number in [0, 1]", f"got {p!r}"))
    if not 0 <= p <= 1:
        raise InvalidInputError(sentence(name, "must lie in [0, 1]", f"got {p}"))
    return float(p) + 0.0  # -0.0 is 0.0


def checked_key(key: Any) -> Key:
    """Return the key as Python's text or whole number, so that a saved state gives it back unchanged."""
    if key is None or type(key) in (str, int):
        return key  # type: ignore[no-any-return]
    if isinstance(key, (np.integer, np.str_)):
        return key.item()
    rule = "must be text or a whole number"
    raise InvalidInputError(sentence("key", rule, f"got {key!r}", "use str(key)"))


def checked_count(value: Any, name: str, least: int = 0, most: int = 10**15) -> int:
    """Return a whole number from `least` to `most`, or refuse."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        rule = f"must be a whole number from {least} to {most:,}"
        raise InvalidInputError(sentence(name, rule, f"got {value!r}"))
    return int(value)


def checked_horizon(value: Any) -> int | None:
    """Return a number of rounds, or None where it is not known."""
    return None if value is None else checked_count(value, "horizon", 1, MOST_ROUNDS)


def checked_bins(value: Any) -> int:
    """Return a number of bins."""
    return checked_count(value, "bins", 1, MOST_BINS)


def checked_fraction(value: Any, name: str, *, one: bool) -> float:
    """Return a number in (0, 1), or in (0, 1] where `one` is allowed."""
    numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not numeric or not (0 < value < 1 or (one and value == 1)) or not math.isfinite(value):
        rule = "must lie in (0, 1]" if one else "must lie strictly between 0 and 1"
        raise InvalidInputError(sentence(name, rule, f"got {value!r}"))
    return float(value)


def outcome_column(y: Any) -> Array:
    """Return a column of outcomes, all 0 or 1; it may be empty."""
    if array_of(y, "y").shape == (0,):
        return np.empty(0)
    column = vector(y, "y")
    if column.dtype.kind == "f":
        reject_rows("y", "must not be missing", column, np.isnan(column))
    reject_rows("y", "must be 0 or 1", column, (column != 0) & (column != 1), FRACTION)
    return column.astype(np.float64)


def probability_column(p: Any, outcomes: Array, name: str) -> Array:
    """Return a column of probabilities as long as the outcomes."""
    if len(outcomes) == 0 and array_of(p, name).shape == (0,):
        return np.empty(0)
    column = vector(p, name)
    check_same_length(column, outcomes, (name, "y"))
    if column.dtype.kind == "f":
        reject_rows(name, "must not be missing", column, np.isnan(column))
    check_unit_interval(column, name)
    return column.astype(np.float64) + 0.0


def batch_ends(batches: Any, size: int) -> npt.NDArray[np.int64]:
    """Return where each batch ends; equal neighbours are one batch, and None makes every row its own.

    A label that comes back after others have come would be learnt before it is forecast: refused.
    """
    if batches is None:
        return np.arange(1, size + 1, dtype=np.int64)
    labels = array_of(batches, "batches")
    check_same_length(labels, np.empty(size), ("batches", "y"))
    if size == 0:
        return np.empty(0, dtype=np.int64)
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    starts = labels[np.concatenate([[0], changes])]
    if len(set(starts.tolist())) < len(starts):
        again = next(label for k, label in enumerate(starts.tolist()) if label in starts.tolist()[:k])
        rule = "must hold each batch in one stretch of rows"
        hint = "sort the rows by batch first"
        raise InvalidInputError(sentence("batches", rule, f"got {again!r} in two stretches", hint))
    return np.concatenate([changes, [size]]).astype(np.int64)
