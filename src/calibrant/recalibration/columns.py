"""Columns that stand beside the predictions: covariates, groups and clusters, from a mapping or any frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.frames import in_memory
from calibrant.groups.coding import exact_array, ordered_categories
from calibrant.groups.ordered import OrderedValues, remembered
from calibrant.inputs import array_of, is_gap
from calibrant.numerals import counted


def columns_of(given: Any, rows: int, subject: str = "covariates") -> dict[str, npt.NDArray[Any]]:
    """Return columns by name, each with one value per row."""
    columns = _mapped(given, subject)
    if not columns:
        raise InvalidInputError(sentence(subject, "must have a column", "got none"))
    for name, column in columns.items():
        if column.shape != (rows,):
            got = f"got shape {column.shape} for {counted(rows, 'row')}"
            raise InvalidInputError(sentence(f"{subject} {name!r}", "must have one value per row", got))
    return columns


def joined_columns(
    covariates: Any, groups: Any, rows: int
) -> tuple[dict[str, npt.NDArray[Any]], tuple[str, ...]]:
    """Return the columns of both, and the names of groups; one name must not stand for two columns."""
    columns = {} if covariates is None else columns_of(covariates, rows)
    named = {} if groups is None else columns_of(groups, rows, "groups")
    for name in named:
        if name in columns and not _equal(columns[name], named[name]):
            got = f"got two columns named {name!r} that differ"
            hint = "rename one of them"
            raise InvalidInputError(sentence("covariates and groups", "must have other names", got, hint))
    return {**columns, **named}, tuple(named)


def _equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether two columns have the same values, gaps in the same rows."""
    return all(
        is_gap(a) == is_gap(b) and (is_gap(a) or (type(a) is type(b) and a == b))
        for a, b in zip(one.tolist(), other.tolist(), strict=True)
    )


def cluster_labels(given: Any, rows: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the labels of clusters, from an array or from one column of a frame, and which are missing."""
    columned = isinstance(given, Mapping) or hasattr(type(given), "columns")
    (labels,) = columns_of(given if columned else {"clusters": given}, rows, "clusters").values()
    if labels.dtype.kind != "O":
        return labels, np.asarray(labels != labels)
    return labels, np.array([is_gap(label) for label in labels.tolist()], dtype=bool)


def _mapped(given: Any, subject: str) -> dict[str, npt.NDArray[Any]]:
    if isinstance(given, Mapping):
        return {str(name): _array(column, f"{subject} {name!r}") for name, column in given.items()}
    import narwhals as nw

    try:
        table: Any = nw.from_native(given, allow_series=True)
    except TypeError:
        got = f"got {type(given).__name__}"
        rule = "must be a mapping of columns or a data frame"
        raise InvalidInputError(sentence(subject, rule, got)) from None
    if isinstance(table, nw.Series):
        table = table.to_frame()
    table = in_memory(table)
    if isinstance(table, dict):
        return {name: array_of(column, f"{subject} {name!r}") for name, column in table.items()}
    return {name: _values(table[name]) for name in table.columns}


def _values(series: Any) -> npt.NDArray[Any]:
    """Return the values of a series; categories that have an order keep it."""
    order = ordered_categories(series)
    return exact_array(series) if order is None else OrderedValues.of(series.to_list(), order)


def _array(column: Any, subject: str) -> npt.NDArray[Any]:
    """Return a column as it is: of a list, numpy would turn gaps and numbers beside text into text."""
    import narwhals as nw

    column = remembered(column)
    if isinstance(column, OrderedValues):
        return column
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _values(series)
    array = array_of(column, subject)
    if array.dtype.kind in "US" and isinstance(column, list | tuple):
        array = np.empty(len(column), dtype=object)
        array[:] = column
    return array
