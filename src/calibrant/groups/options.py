"""Options that the rooms of this floor share."""

from __future__ import annotations

import numpy as np

from calibrant.errors import InvalidInputError, sentence


def at_least(least: int, **options: int) -> None:
    """Refuse an option that is not a whole number of at least `least`."""
    for name, value in options.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise InvalidInputError(
                sentence(name, f"must be a whole number of at least {least}", f"got {value!r}")
            )
