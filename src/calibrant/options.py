"""Options of public functions: what is not a number of the right kind and range is refused by its name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence


def whole_number(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return a whole number from `least` to `most`; True, 3.0 and "3" do not count as such."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InvalidInputError(sentence(name, f"must be a whole number {bounds}", f"got {value!r}"))
    return int(value)


def number(name: str, value: Any) -> float:
    """Return a number, infinity included; the caller checks its range."""
    if not _is_number(value) or math.isnan(value):
        raise InvalidInputError(sentence(name, "must be a number", f"got {value!r}"))
    return float(value)


def finite_number(name: str, value: Any, least: float = -math.inf) -> float:
    """Return a finite number of at least `least`."""
    if not _is_number(value) or not math.isfinite(value) or value < least:
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise InvalidInputError(sentence(name, f"must be a finite number{bound}", f"got {value!r}"))
    return float(value)


def positive_number(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    if not _is_number(value) or not math.isfinite(value) or value <= 0:
        raise InvalidInputError(sentence(name, "must be a positive number", f"got {value!r}"))
    return float(value)


def open_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1: a confidence, a level, a power."""
    if not _is_number(value) or not 0 < value < 1:
        raise InvalidInputError(sentence(name, "must lie strictly between 0 and 1", f"got {value!r}"))
    return float(value)


def positive_share(name: str, value: Any) -> float:
    """Return a number above 0, and at most 1."""
    if not _is_number(value) or not 0 < value <= 1:
        raise InvalidInputError(sentence(name, "must lie in (0, 1]", f"got {value!r}"))
    return float(value)


def closed_share(name: str, value: Any) -> float:
    """Return a number from 0 to 1, ends included."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise InvalidInputError(sentence(name, "must lie in [0, 1]", f"got {value!r}"))
    return float(value)


def confidence_or_none(name: str, value: Any) -> float:
    """Return a number from 0, which stands for no intervals, to 1, which no confidence reaches."""
    if not _is_number(value) or not 0 <= value < 1:
        rule = "must lie in [0, 1), 0 for no intervals"
        raise InvalidInputError(sentence(name, rule, f"got {value!r}"))
    return float(value)


def clipping(name: str, value: Any) -> float:
    """Return how far from 0 and 1 predictions are kept: a number strictly between 0 and 0.5."""
    if not _is_number(value) or not 0 < value < 0.5:
        raise InvalidInputError(sentence(name, "must lie in (0, 0.5)", f"got {value!r}"))
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Return True or False; nothing else is taken for either."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(sentence(name, "must be True or False", f"got {value!r}"))
    return bool(value)


def whole_numbers(least: int, **options: Any) -> None:
    """Refuse any of several options that is not a whole number of at least `least`."""
    for name, value in options.items():
        whole_number(name, value, least)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
