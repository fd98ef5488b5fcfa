"""Checks of options that several methods share."""

from __future__ import annotations

import numpy as np

from calibrant.errors import InvalidInputError, sentence


def at_least_two(name: str, value: object) -> None:
    """Refuse what is not a whole number from 2."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise InvalidInputError(sentence(name, "must be a whole number from 2", f"got {value!r}"))


def checked_share(name: str, share: object) -> float:
    """Return a number between 0 and 1, or say what it must be."""
    if isinstance(share, bool) or not isinstance(share, (int, float, np.floating)) or not 0 < share < 1:
        raise InvalidInputError(sentence(name, "must lie between 0 and 1", f"got {share!r}"))
    return float(share)
