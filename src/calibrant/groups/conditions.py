"""Conditions on one column: what a rule is made of. Each reads as words and judges the values of new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.condition_words import value_in_words, written


@dataclass(frozen=True, slots=True)
class OneOf:
    """The column has one of some values, or none of them where `negated`; `missing` is one of the values.

    `mixed` says that the column holds text beside other values, so that text is quoted.
    """

    column: str
    values: tuple[Any, ...]
    missing: bool = False
    negated: bool = False
    mixed: bool = False

    def __str__(self) -> str:
        name, values = written(self.column), [value_in_words(value, self.mixed) for value in self.values]
        if self.missing and not values:
            return f"{name} is {'not ' if self.negated else ''}missing"
        if len(values) == 1 and not self.missing:
            return f"{name} {'!=' if self.negated else '='} {values[0]}"
        listed = ", ".join((["missing"] if self.missing else []) + values)
        return f"{name} {'not in' if self.negated else 'in'} {{{listed}}}"

    def holds(self, value: Any) -> bool:
        """Return whether a value, None for missing, meets the condition."""
        return self.holds_each([value])[0]

    def holds_each(self, values: Sequence[Any]) -> list[bool]:
        """Return which of several values meet the condition."""
        known = {_plain(one) for one in self.values}
        inside = (self.missing if value is None else _plain(value) in known for value in values)
        return [one != self.negated for one in inside]


@dataclass(frozen=True, slots=True)
class Within:
    """The column lies at or above `low` and below `high`, either may be None; `missing` is in or out.

    `gaps` says whether values were missing where the rule was found. Categories have an order of their own:
    `categories` then holds those that are meant.
    """

    column: str
    low: Any
    high: Any
    missing: bool = False
    gaps: bool = False
    categories: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        name = written(self.column)
        if self.low is None:
            text = f"{name} < {value_in_words(self.high)}"
            return f"({text} or missing)" if self.missing else f"{text} (not missing)" if self.gaps else text
        if self.high is None:
            return f"{name} >= {value_in_words(self.low)}"
        return f"{value_in_words(self.low)} <= {name} < {value_in_words(self.high)}"

    def holds(self, value: Any) -> bool:
        """Return whether a value, None for missing, meets the condition."""
        if value is None:
            return self.missing
        if self.categories is not None:
            return value in self.categories
        plain = _plain(value)
        above = self.low is None or bool(plain >= _plain(self.low))
        return above and (self.high is None or bool(plain < _plain(self.high)))

    def holds_each(self, values: Sequence[Any]) -> list[bool]:
        """Return which of several values meet the condition."""
        return [self.holds(value) for value in values]


@dataclass(frozen=True, slots=True)
class Masked:
    """The rows where the user's mask of this name is true."""

    column: str

    def __str__(self) -> str:
        return self.column

    def holds(self, value: Any) -> bool:
        """Return whether the mask is true."""
        if not isinstance(value, bool | np.bool_):
            raise InvalidInputError(
                sentence(f"mask {self.column!r}", "must hold truth values", f"got {value!r}")
            )
        return bool(value)

    def holds_each(self, values: Sequence[Any]) -> list[bool]:
        """Return where the mask is true."""
        return [self.holds(value) for value in values]


Condition = OneOf | Within | Masked


def check_kind(condition: Condition, labels: list[Any]) -> None:
    """Refuse new values of another kind than those the condition speaks of.

    Nobody would be a member if all are, and what has no place in an order is not below or above a limit.
    """
    ends = condition.values if isinstance(condition, OneOf) else ()
    if isinstance(condition, Within):
        ends = condition.categories or (condition.low, condition.high)
    known = {_kind(value) for value in ends if value is not None}
    kinds = {_kind(label) for label in labels if label is not None}
    compared = isinstance(condition, Within) and condition.categories is None
    if known and kinds and (not known & kinds or (compared and not kinds <= known)):
        got, rule = (
            f"got {'/'.join(sorted(kinds))}",
            f"must hold {'/'.join(sorted(known))} as in the rule",
        )
        raise InvalidInputError(sentence(f"column {condition.column!r}", rule, got))


def _kind(value: Any) -> str:
    if isinstance(value, timedelta | np.timedelta64):  # numpy counts the latter among numbers
        return "durations"
    if isinstance(value, bool | np.bool_ | Real | Decimal | np.number):
        return "numbers"
    if isinstance(value, date | np.datetime64):
        return "dates"
    return "times" if isinstance(value, time) else "text" if isinstance(value, str) else "other values"


def _plain(value: Any) -> Any:
    """Return a value that compares alike, whichever container it came from."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, timedelta | np.timedelta64):
        return np.timedelta64(value).astype("timedelta64[us]").astype(np.int64).item()
    if isinstance(value, date | np.datetime64):
        if isinstance(value, datetime):
            value = value.replace(tzinfo=None)
        return np.datetime64(value).astype("datetime64[us]").astype(np.int64).item()
    return value.item() if isinstance(value, np.generic) else value
