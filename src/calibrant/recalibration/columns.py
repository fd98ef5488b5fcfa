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
from calibrant.inputs import array_of
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
