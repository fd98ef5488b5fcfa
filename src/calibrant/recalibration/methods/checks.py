"""Checks of options that the methods with covariates share."""

from __future__ import annotations

from calibrant.errors import InvalidInputError, sentence


def at_least_two(name: str, value: object) -> None:
    """Refuse what is not a whole number from 2."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise InvalidInputError(sentence(name, "must be a whole number from 2", f"got {value!r}"))
