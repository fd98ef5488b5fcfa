"""What a stream is handed one at a time: an outcome, a prediction, a key; and how long it may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.options import whole_number

MOST_ROUNDS = 10**10  # of a horizon: more would need more cells than anybody wants to wait for
MOST_BINS = 10**5
LONGEST = 10**15  # rounds of a stream, where any number will do
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


def checked_count(value: Any, name: str) -> int:
    """Return a number of rounds that a stream may have, or refuse."""
    return whole_number(name, value, 0, LONGEST)


def checked_horizon(value: Any) -> int | None:
    """Return a number of rounds, or None where it is not known."""
    return None if value is None else whole_number("horizon", value, 1, MOST_ROUNDS)


def checked_bins(value: Any) -> int:
    """Return a number of bins."""
    return whole_number("bins", value, 1, MOST_BINS)
