"""Rules: who is in a subpopulation, in words ("age >= 43 and county in {Inyo, Mono}") and among new rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.groups.coding import code_columns, named_columns
from calibrant.groups.column_codes import Column
from calibrant.groups.conditions import Condition, Masked, OneOf, Within, check_kind
from calibrant.inputs import check_same_length

EVERYONE = "everyone"


class Rule(str):
    """Who is in a subpopulation: a text that people read, and that picks the members among new rows.

    As a string it is the rule in words; columns and values that could be misread are quoted. `conditions`
    must all hold; none at all means everyone. The rule of a mask that the user named is that name.

    >>> rule = Rule([OneOf("city", ("B",)), Within("age", 43.0, None)])
    >>> print(rule)
    city = B and age >= 43
    >>> rule.members({"city": ["A", "B", "B"], "age": [50, 50, 20]}).tolist()
    [False, True, False]
    """

    conditions: tuple[Condition, ...]

    def __new__(cls, conditions: Iterable[Condition] = ()) -> Rule:
        """Join conditions."""
        given = tuple(conditions) if isinstance(conditions, Iterable) else (conditions,)
        for condition in given:
            if not isinstance(condition, Condition):
                hint = "take the rule of a group of audit, or build it of OneOf, Within and Masked"
                raise InvalidInputError(
                    sentence("rule", "must be made of conditions", f"got {condition!r}", hint)
                )
        self = super().__new__(cls, " and ".join(map(str, given)) or EVERYONE)
        self.conditions = given
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.conditions,)

    def members(self, frame: Any) -> npt.NDArray[np.bool_]:
        """Return which rows of a frame are members: any data frame, or a mapping of names to columns."""
        named = dict(named_columns(frame, "frame"))
        inside = np.ones(_rows(named), dtype=bool)
        for condition in self.conditions:
            if condition.column not in named:
                raise reject_name("column of the rule", condition.column, list(named))
            check_same_length(
                named[condition.column], inside, (f"column {condition.column!r}", "the first column")
            )
            inside &= _met(condition, named[condition.column], len(inside))
        return inside


def _rows(named: dict[str, Any]) -> int:
    for name, values in named.items():
        if not hasattr(values, "__len__"):
            raise InvalidInputError(
                sentence(f"column {name!r}", "must be one-dimensional", f"got {values!r}")
            )
    return len(next(iter(named.values()), ()))


def _met(condition: Condition, values: Any, length: int) -> npt.NDArray[np.bool_]:
    """Judge every distinct value of a column once."""
    (column,) = code_columns({condition.column: values}, length, "frame")
    labels = list(column.labels)
    check_kind(condition, labels)
    return np.array(condition.holds_each(labels), dtype=bool)[column.codes]


def conjunction(conditions: Iterable[Condition | None]) -> Rule:
    """Return the rule of some conditions; those that exclude nobody are None."""
    return Rule(condition for condition in conditions if condition is not None)


def named_mask(name: str) -> Rule:
    """Return the rule of a mask that the user named."""
    return Rule([Masked(name)])


def equality(column: Column, code: int) -> OneOf:
    """Say that a column has one value."""
    return _one_of(column, [code])


def between(column: Column, low: int, high: int) -> Condition | None:
    """Say that the code of an ordered column lies in low .. high - 1; a gap in the data is code 0."""
    end, lowest = len(column.labels), 1 if column.missing else 0
    if high - low == 1:
        return equality(column, low)
    if low <= lowest and high == end:
        return OneOf(column.name, (), missing=True, negated=True) if low == 1 and column.missing else None
    return Within(
        column.name,
        None if low <= lowest else _cut(column, low),
        None if high == end else _cut(column, high),
        missing=column.missing and low == 0,
        gaps=column.missing,
        categories=_categories(column, low, high),
    )


def among(column: Column, codes: Iterable[int]) -> OneOf | None:
    """Say that a column takes one of several categories, by the shorter of the list and its complement."""
    inside = sorted(codes)
    outside = sorted(set(range(len(column.labels))) - set(inside))
    if not outside:
        return None
    if len(inside) > 1 and (len(outside) == 1 or len(outside) < len(inside)):
        return _one_of(column, outside, negated=True)
    return _one_of(column, inside)


def _one_of(column: Column, codes: Sequence[int], negated: bool = False) -> OneOf:
    gap = column.missing and 0 in codes
    values = tuple(column.labels[code] for code in codes if not (gap and code == 0))
    return OneOf(column.name, values, gap, negated, _mixed(column))


@lru_cache(maxsize=64)  # asked once per value of the column, which may have very many
def _texts(column: Column) -> int:
    """Return how many labels of a column are texts."""
    return sum(isinstance(label, str) for label in column.labels)


def _mixed(column: Column) -> bool:
    """Return whether some labels of a column are texts and others are not."""
    return 0 < _texts(column) < len(column.labels) - int(column.missing)


def _categories(column: Column, low: int, high: int) -> tuple[Any, ...] | None:
    """Return the labels meant where their order is not that of their values."""
    return tuple(label for label in column.labels[low:high] if label is not None) if _texts(column) else None


def _cut(column: Column, code: int) -> Any:
    """Return the shortest number that separates the values below `code` from those at and above it."""
    below, above = column.labels[code - 1], column.labels[code]
    if not isinstance(above, float | np.floating) or below is None:
        return above
    for digits in range(1, 17):
        short = float(f"{above:.{digits}g}")
        if below < short <= above:
            return short
    return above
