"""What a stream is handed: single outcomes, predictions and keys, and whole columns, checked at the door."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence

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
