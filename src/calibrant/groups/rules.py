"""Subpopulations in words: "age >= 43 and county in {Inyo, Mono}"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.groups.coding import Column
from calibrant.groups.result import EVERYONE


def conjunction(conditions: Iterable[str]) -> str:
    """Join conditions; none at all means everyone."""
    return " and ".join(conditions) or EVERYONE


def equality(column: Column, code: int) -> str:
    """Say that a column has one value."""
    if column.missing and code == 0:
        return f"{column.name} is missing"
    return f"{column.name} = {_text(column.labels[code])}"


def between(column: Column, low: int, high: int) -> str:
    """Say that the code of an ordered column lies in low .. high - 1; a gap in the data is code 0."""
    end = len(column.labels)
    if high - low == 1:
        return equality(column, low)
    if column.missing and low == 0:
        return f"({column.name} < {_cut(column, high)} or missing)" if high < end else ""
    lowest = 1 if column.missing else 0
    if low <= lowest and high == end:
        return f"{column.name} is not missing" if low == 1 and column.missing else ""
    if low <= lowest:
        text = f"{column.name} < {_cut(column, high)}"
        return f"{text} (not missing)" if column.missing else text
    if high == end:
        return f"{column.name} >= {_cut(column, low)}"
    return f"{_cut(column, low)} <= {column.name} < {_cut(column, high)}"


def among(column: Column, codes: Iterable[int]) -> str:
    """Say that a column takes one of several categories, by the shorter of the list and its complement."""
    inside = sorted(codes)
    outside = sorted(set(range(len(column.labels))) - set(inside))
    if not outside:
        return ""
    if len(inside) == 1:
        return equality(column, inside[0])
    if len(outside) == 1:
        text = equality(column, outside[0])
        return text.replace(" is missing", " is not missing").replace(" = ", " != ", 1)
    if len(outside) < len(inside):
        return f"{column.name} not in {_listed(column, outside)}"
    return f"{column.name} in {_listed(column, inside)}"


def _listed(column: Column, codes: list[int]) -> str:
    names = ["missing" if column.missing and code == 0 else _text(column.labels[code]) for code in codes]
    return "{" + ", ".join(names) + "}"


def _text(label: Any) -> str:
    if isinstance(label, float | np.floating):
        return f"{label:.17g}" if float(f"{label:.12g}") != label else f"{label:.12g}"
    return str(label)


def _cut(column: Column, code: int) -> str:
    """Return the shortest number that separates the values below `code` from those at and above it."""
    below, above = column.labels[code - 1], column.labels[code]
    if not isinstance(above, float | np.floating) or below is None:
        return _text(above)
    for digits in range(1, 17):
        short = float(f"{above:.{digits}g}")
        if below < short <= above:
            return _text(short)
    return _text(above)
