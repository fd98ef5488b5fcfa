"""Columns of any frame as integer codes: ordered values, unordered categories, missing as its own code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.frames import in_memory
from calibrant.groups.column_codes import Column, narrowest
from calibrant.groups.label_codes import code_labels, code_labels_of, first_codes
from calibrant.groups.number_codes import code_numbers
from calibrant.groups.ordered import OrderedValues, remembered
from calibrant.inputs import array_of, check_aligned, check_same_length

EXACT = 2**53  # up to here a float is every whole number


def code_columns(
    data: Any, length: int, argument: str, nominal: Sequence[str] = (), labels: Any = None
) -> list[Column]:
    """Code every column of a frame, a mapping of columns or a two-dimensional array.

    They have `length` rows; `labels` is the index of the predictions that they belong to.
    """
    named = named_columns(data, argument)
    for subject, part in [(argument, data), *((f"{argument} {name!r}", values) for name, values in named)]:
        check_aligned(part, labels, (subject, "y_prob"))
    if not isinstance(nominal, str | Iterable):
        raise InvalidInputError(sentence("nominal", f"must name columns of {argument}", f"got {nominal!r}"))
    unordered = {nominal} if isinstance(nominal, str) else set(map(str, nominal))
    columns = [_narrowed(_code(name, values, name in unordered)) for name, values in named]
    if not columns:
        raise InvalidInputError(sentence(argument, "must have a column", "got none"))
    for name in sorted(unordered.difference(column.name for column in columns)):
        raise reject_name("nominal", name, [column.name for column in columns])
    for column in columns:
        check_same_length(column.codes, range(length), (f"{argument} {column.name!r}", "y_prob"))
    return columns


def _narrowed(column: Column) -> Column:
    return replace(column, codes=column.codes.astype(narrowest(len(column.labels)), copy=False))


def named_columns(data: Any, argument: str) -> list[tuple[str, Any]]:
    """Return the columns of a frame, a mapping or a two-dimensional array by name."""
    if isinstance(data, Mapping):
        return [(str(name), values) for name, values in data.items()]
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return [(f"x{j}", data[:, j]) for j in range(data.shape[1])]  # masked parts stay masked
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data, allow_series=True)
    except TypeError:
        hint = "a data frame, a mapping of columns, a named series and a two-dimensional array can be used"
        raise InvalidInputError(
            sentence(argument, "must be columns", f"got {type(data).__name__}", hint)
        ) from None
    except nw.exceptions.DuplicateError as error:
        got = "got " + ", ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        hint = "rename them, or pass a mapping of names to columns"
        raise InvalidInputError(
            sentence(argument, "must have columns of different names", got, hint)
        ) from None
    frame = in_memory(frame)
    if isinstance(frame, nw.Series):
        return [(_series_name(frame, argument), frame)]
    if isinstance(frame, dict):
        return list(frame.items())
    return [(str(name), frame.get_column(name)) for name in frame.columns]


def _series_name(series: Any, argument: str) -> str:
    """Return the name of a series, which its groups are called by."""
    if series.name in (None, ""):
        hint = f'pass {argument}={{"region": series}}, or rename it'
        raise InvalidInputError(sentence(argument, "must have a name", "got a series without one", hint))
    return str(series.name)


def _code(name: str, values: Any, nominal: bool) -> Column:
    """Choose how to code a column from its type."""
    import narwhals as nw

    values = remembered(values)
    if isinstance(values, OrderedValues):
        return code_labels_of(name, values.tolist(), nominal, values.order)
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        ordered = ordered_categories(series)
        if ordered is not None:
            return code_labels_of(name, series.to_list(), nominal, ordered)
        # objects (pandas) may be of any type, whatever the first ones are
        objects = isinstance(getattr(series.to_native(), "dtype", None), np.dtypes.ObjectDType)
        if series.dtype in (nw.Categorical, nw.String, nw.Enum) and not objects:
            return code_labels_of(name, series, True)
        if isinstance(series.dtype, nw.Decimal):
            return _code_decimals(name, series, nominal)
        if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone:
            series = series.dt.replace_time_zone(None)
        array = exact_array(series)
    else:
        array = array_of(values, f"column {name!r}")
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            array = np.array(values, dtype=object)  # numpy turns numbers beside text into text
    if array.ndim != 1:
        raise InvalidInputError(sentence(f"column {name!r}", "must be one-dimensional", f"got {array.shape}"))
    if array.dtype.kind in "US":
        return code_labels_of(name, array.tolist(), True)
    if array.dtype.kind == "O":
        return _code_mixed(name, array, nominal)
    return code_numbers(name, array, nominal or array.dtype.kind == "b")


def _code_decimals(name: str, series: Any, nominal: bool) -> Column:
    """Code decimals as floats, or one by one where some are too long for these."""
    import narwhals as nw

    numbers = series.cast(nw.String).cast(nw.Float64)  # PyArrow makes 0.30000000000000004 of 0.3
    if series.null_count() < len(series) and float(numbers.abs().max()) >= EXACT:  # rounded already
        return _code_mixed(name, np.array(series.to_list(), dtype=object), nominal)
    return code_numbers(name, exact_array(numbers), nominal)


def exact_array(series: Any) -> npt.NDArray[Any]:
    """Return the values of a series; Python's whole numbers where numpy would round them beside a gap."""
    gaps = series.dtype.is_integer() and 0 < series.null_count() < len(series)
    if gaps and max(abs(int(series.min())), abs(int(series.max()))) > EXACT:
        values = np.array(series.to_list(), dtype=object)
        values[series.is_null().to_numpy()] = None  # pandas has a word of its own
        return values
    return np.asarray(series.to_numpy())


def ordered_categories(series: Any) -> list[Any] | None:
    """Return the categories of an ordered categorical (pandas) or an Enum (Polars), lowest first."""
    import narwhals as nw

    if isinstance(series.dtype, nw.Enum):
        return list(series.dtype.categories)
    kind: Any = getattr(series.to_native(), "dtype", None)
    return kind.categories.tolist() if getattr(kind, "ordered", None) is True else None


def _code_mixed(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    """Code an object column: in order where it holds only numbers or dates, and gaps; else as categories."""
    first, found = first_codes(name, array.tolist())
    labels = _without_decimals(found)
    known = [label for label in labels if label is not None]
    if all(isinstance(item, Real | Decimal) and not isinstance(item, bool) for item in known):
        if any(isinstance(item, Integral) and abs(int(item)) > EXACT for item in known):
            return code_labels(name, first, labels, nominal, sorted(known))  # floats would round them
        numbers = np.array([np.nan if item is None else item for item in labels], dtype=np.float64)
        return code_numbers(name, numbers[first], nominal)
    order = _in_time(known)
    return code_labels(name, first, labels, nominal or order is None, order)


def _without_decimals(labels: list[Any]) -> list[Any]:
    """Return whole numbers in place of decimals that all are such: floats might round them."""
    decimals = [label for label in labels if isinstance(label, Decimal)]
    if not decimals or not all(one.is_finite() and one == one.to_integral_value() for one in decimals):
        return labels
    return [int(label) if isinstance(label, Decimal) else label for label in labels]


def _in_time(labels: list[Any]) -> list[Any] | None:
    """Return dates, times or durations in their order; None where they are something else."""
    if len(set(map(type, labels))) > 1 or not isinstance(labels[0], date | time | timedelta):
        return None
    try:
        return sorted(labels)
    except TypeError:  # some with a time zone and some without
        return None
