"""Columns of any frame as numbers for trees and tables, in a way that can be saved and met again.

A number stays a number, a moment becomes seconds, an ordered category its rank and any other category a
code. What is missing is NaN, and so is a category that was never seen; both are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.groups.coding import code_columns
from calibrant.groups.column_codes import Column
from calibrant.results import Array

Kind = Literal["number", "moment", "ordered", "category"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One column: its name, what its values are, and for categories all that were seen, in their order."""

    name: str
    kind: Kind
    labels: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        known = {"labels": list(self.labels)} if self.kind in ("ordered", "category") else {}
        return {"name": self.name, "kind": self.kind, **known}

    def numbers(self, column: Column) -> Array:
        """Return the number of each distinct label of a column, NaN for what is missing or not known."""
        if self.kind in ("ordered", "category"):
            place = {label: float(code) for code, label in enumerate(self.labels)}
            return np.array([place.get(_plain(label), np.nan) for label in column.labels])
        value = _number if self.kind == "number" else _seconds
        try:
            return np.array(
                [np.nan if label is None else value(label) for label in column.labels], dtype=float
            )
        except (TypeError, ValueError):
            bad = next(label for label in column.labels if not _reads(value, label))
            rule = "must be numbers" if self.kind == "number" else "must be dates or times"
            raise InvalidInputError(
                sentence(f"column {self.name!r}", f"{rule}, as when it was fitted", f"got {bad!r}")
            ) from None


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Rows as numbers, one column per feature; how many values were missing, or never seen, by name."""

    rows: Array
    missing: Mapping[str, int]
    unseen: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Features:
    """How some columns become numbers."""

    features: tuple[Feature, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Features:
        """Learn from coded columns what there is to know of each."""
        return cls(tuple(_feature(column) for column in columns))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [feature.name for feature in self.features]

    @property
    def categorical(self) -> tuple[int, ...]:
        """Which columns hold codes of categories without an order."""
        return tuple(k for k, feature in enumerate(self.features) if feature.kind == "category")

    def columns(self, data: Any, length: int, argument: str = "covariates") -> list[Column]:
        """Code the columns needed of any container, in order; one that is absent is refused by name."""
        nominal = [f.name for f in self.features if f.kind == "category"]
        needed = _only(data, self.names, argument)
        coded = {column.name: column for column in code_columns(needed, length, argument, nominal)}
        for name in self.names:
            if name not in coded:
                raise reject_name(argument, name, sorted(coded))
        return [coded[name] for name in self.names]

    def encode(self, columns: Sequence[Column]) -> Encoded:
        """Turn coded columns into numbers."""
        rows = np.empty((len(columns[0].codes), len(columns)))
        missing, unseen = {}, {}
        for j, (feature, column) in enumerate(zip(self.features, columns, strict=True)):
            numbers = feature.numbers(column)
            rows[:, j] = numbers[column.codes]
            gaps = int(np.count_nonzero(column.codes == 0)) if column.missing else 0
            strange = int(np.count_nonzero(np.isnan(rows[:, j]))) - gaps
            missing[feature.name], unseen[feature.name] = gaps, strange
        return Encoded(rows, missing, unseen)

    def to_list(self) -> list[dict[str, Any]]:
        """Return everything, ready for JSON."""
        return [feature.to_dict() for feature in self.features]

    @classmethod
    def from_list(cls, items: Sequence[Mapping[str, Any]]) -> Features:
        """Read back what `to_list` wrote."""
        if not items:
            raise InvalidInputError(sentence("columns", "must hold a column", "got none"))
        return cls(tuple(_read_back(item) for item in items))


def _read_back(item: Mapping[str, Any]) -> Feature:
    """Check what was stored of one column."""
    name, kind, labels = item["name"], item["kind"], item.get("labels", [])
    if not isinstance(name, str):
        raise InvalidInputError(sentence("name of a column", "must be text", f"got {name!r}"))
    if kind not in get_args(Kind):
        raise reject_name(f"kind of column {name!r}", str(kind), list(get_args(Kind)))
    if not isinstance(labels, list) or not all(isinstance(one, str | int | float) for one in labels):
        raise InvalidInputError(sentence(f"labels of column {name!r}", "must be texts or numbers"))
    return Feature(name, kind, tuple(labels))


def _only(data: Any, names: Sequence[str], argument: str) -> Any:
    """Return the columns of those names where the container has names; others cost nothing then."""
    if isinstance(data, Mapping):
        return {name: values for name, values in data.items() if str(name) in set(names)} or data
    return data


def _feature(column: Column) -> Feature:
    known = [label for label in column.labels if label is not None]
    if column.nominal:
        return Feature(column.name, "category", tuple(map(_plain, known)))
    if all(isinstance(label, Real | Decimal) for label in known):
        return Feature(column.name, "number")
    if all(isinstance(label, np.datetime64 | np.timedelta64 | date | time | timedelta) for label in known):
        return Feature(column.name, "moment")
    return Feature(column.name, "ordered", tuple(map(_plain, known)))


def _plain(label: Any) -> Any:
    """Return a label that JSON can say, equal for equal labels."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, float) and label.is_integer():
        return int(label)  # 1.0 and 1 are the same category, whatever gaps did to the column's type
    return label if isinstance(label, str | int | float | bool) or label is None else str(label)


def _number(label: Any) -> float:
    if not isinstance(label, Real | Decimal):
        raise TypeError
    return float(label)


def _seconds(label: Any) -> float:
    if isinstance(label, np.datetime64):
        return float((label - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    if isinstance(label, np.timedelta64):
        return float(label / np.timedelta64(1, "s"))
    if isinstance(label, timedelta):
        return label.total_seconds()
    if isinstance(label, time):
        return label.hour * 3600.0 + label.minute * 60.0 + label.second + label.microsecond * 1e-6
    if isinstance(label, datetime):
        label = label.replace(tzinfo=None)
        return float((label - datetime(1970, 1, 1)).total_seconds())
    if isinstance(label, date):
        return float((label - date(1970, 1, 1)).days * 86400)
    raise TypeError


def _reads(value: Any, label: Any) -> bool:
    try:
        value(label)
    except (TypeError, ValueError):
        return label is None
    return True
