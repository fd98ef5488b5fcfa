"""Columns of any frame as integer codes: ordered values, unordered categories, missing as its own code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.frames import in_memory
from calibrant.groups.ordered import OrderedValues, remembered
from calibrant.inputs import array_of, check_aligned, check_same_length

Codes = npt.NDArray[Any]

FEW = 64  # values that are looked for one by one, which is quicker than counting all


def narrowest(count: int) -> np.dtype[Any]:
    """Return the smallest type that numbers so many things: codes are gathered again and again."""
    return np.min_scalar_type(max(0, count - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One covariate: `codes` of its sorted distinct `labels`; where values are missing they are code 0.

    A nominal column has categories without an order. The label of missing is None.
    """

    name: str
    codes: Codes
    labels: Sequence[Any] | npt.NDArray[Any]
    nominal: bool
    missing: bool = field(default=False)

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """Return the column for some rows."""
        return replace(self, codes=self.codes[rows])

    def known_from(self, rows: npt.NDArray[Any]) -> Column:
        """Return the column with the labels that some rows have: rows that are left out do not count."""
        present = np.zeros(len(self.labels), dtype=bool)
        present[self.codes[rows]] = True
        if present.all():
            return self
        codes = (np.cumsum(present) - present).astype(self.codes.dtype)[self.codes]
        labels = [label for label, kept in zip(self.labels, present, strict=True) if kept]
        return replace(self, codes=codes, labels=labels, missing=self.missing and bool(present[0]))


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
        return _code_objects(name, values.tolist(), nominal, values.order)
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        ordered = ordered_categories(series)
        if ordered is not None:
            return _code_objects(name, series.to_list(), nominal, ordered)
        # objects (pandas) may be of any type, whatever the first ones are
        objects = isinstance(getattr(series.to_native(), "dtype", None), np.dtypes.ObjectDType)
        if series.dtype in (nw.Categorical, nw.String, nw.Enum) and not objects:
            return _code_objects(name, series, True)
        if isinstance(series.dtype, nw.Decimal):
            series = series.cast(nw.Float64)
        elif isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone:
            series = series.dt.replace_time_zone(None)
        array = series.to_numpy()
    else:
        array = array_of(values, f"column {name!r}")
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            array = np.array(values, dtype=object)  # numpy turns numbers beside text into text
    if array.ndim != 1:
        raise InvalidInputError(sentence(f"column {name!r}", "must be one-dimensional", f"got {array.shape}"))
    if array.dtype.kind in "US":
        return _code_objects(name, array.tolist(), True)
    if array.dtype.kind == "O":
        return _code_mixed(name, array, nominal)
    return _code_numbers(name, array, nominal or array.dtype.kind == "b")


def ordered_categories(series: Any) -> list[Any] | None:
    """Return the categories of an ordered categorical (pandas) or an Enum (Polars), lowest first."""
    import narwhals as nw

    if isinstance(series.dtype, nw.Enum):
        return list(series.dtype.categories)
    kind: Any = getattr(series.to_native(), "dtype", None)
    return kind.categories.tolist() if getattr(kind, "ordered", None) is True else None


def _code_mixed(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    """Code an object column: in order where it holds only numbers or dates, and gaps; else as categories."""
    first, labels = _first_codes(name, array.tolist())
    known = [label for label in labels if label is not None]
    if all(isinstance(item, Real | Decimal) and not isinstance(item, bool) for item in known):
        numbers = np.array([np.nan if item is None else item for item in labels], dtype=np.float64)
        return _code_numbers(name, numbers[first], nominal)
    order = _in_time(known)
    return _code_labels(name, first, labels, nominal or order is None, order)


def _in_time(labels: list[Any]) -> list[Any] | None:
    """Return dates, times or durations in their order; None where they are something else."""
    if len(set(map(type, labels))) > 1 or not isinstance(labels[0], date | time | timedelta):
        return None
    try:
        return sorted(labels)
    except TypeError:  # some with a time zone and some without
        return None


def _is_missing(item: Any) -> bool:
    return (
        item is None
        or type(item).__name__ in ("NAType", "NaTType")
        or (isinstance(item, float) and item != item)
    )


def _code_objects(name: str, values: Any, nominal: bool, order: Sequence[Any] | None = None) -> Column:
    """Code categories; their order is the one given, or that of their names."""
    return _code_labels(name, *_first_codes(name, values), nominal, order)


def _code_labels(
    name: str,
    first: npt.NDArray[Any],
    labels: list[Any],
    nominal: bool,
    order: Sequence[Any] | None = None,
) -> Column:
    """Renumber codes by the order of their labels, missing first."""
    gap = labels.index(None) if None in labels else -1
    known = [label for label in labels if label is not None]
    rank = {label: place for place, label in enumerate(order)} if order is not None else None
    known.sort(key=(lambda label: rank[label]) if rank is not None else (lambda label: _by_name(label)))
    place = {label: i + (gap >= 0) for i, label in enumerate(known)}
    remap = np.array([0 if k == gap else place[label] for k, label in enumerate(labels)], dtype=np.int32)
    table: list[Any] = ([None] if gap >= 0 else []) + known
    return Column(name, remap[first], table, nominal, gap >= 0)


def _by_name(label: Any) -> tuple[str, str]:
    return type(label).__name__, str(label)


def _first_codes(name: str, values: Any) -> tuple[npt.NDArray[Any], list[Any]]:
    """Number the distinct values in some order; Arrow does it fastest, a dictionary does it everywhere."""
    if hasattr(values, "to_arrow"):
        try:
            coded = values.to_arrow()
        except (ImportError, TypeError, ValueError):  # no PyArrow, or values of several types
            values = values.to_list()
        else:
            coded = coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded
            if not hasattr(coded, "indices"):
                coded = coded.dictionary_encode()
            labels = coded.dictionary.to_pylist()
            indices = coded.indices
            if indices.null_count:
                labels, indices = [*labels, None], indices.fill_null(len(labels))
            used = np.asarray(indices)
            return used, labels
    codes, found = _numbered(name, values)
    labels = [None if _is_missing(item) else item for item in found]
    if labels.count(None) < 2:
        return codes, labels
    renumbered, merged = _numbered(name, labels)  # several kinds of missing are one
    return renumbered[codes], merged


def _numbered(name: str, values: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """Number the distinct values as they come."""
    table: dict[Any, int] = {}
    try:
        codes = [table.setdefault(item, len(table)) for item in values]
    except TypeError:  # lists, dictionaries
        got = "got " + ", ".join(sorted({type(item).__name__ for item in values}))
        hint = "make a column of each part, or leave the column out"
        raise InvalidInputError(
            sentence(f"column {name!r}", "must have one value per row", got, hint)
        ) from None
    return np.array(codes, dtype=np.int32), list(table)


def _code_numbers(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    """Code numbers, truth values or dates by their rank."""
    kind = array.dtype.kind
    if kind not in "biufmM":
        raise InvalidInputError(
            sentence(f"column {name!r}", "must be numbers, dates or categories", f"got dtype {array.dtype}")
        )
    gaps = np.isnan(array) if kind == "f" else np.isnat(array) if kind in "mM" else None
    if gaps is not None and gaps.any():
        inner = _code_numbers(name, array[~gaps], nominal)
        codes = np.zeros(len(array), dtype=np.int32)
        codes[~gaps] = inner.codes + 1
        return Column(name, codes, [None, *inner.labels], nominal, True)
    if len(array) == 0:
        return Column(name, np.empty(0, dtype=np.int32), [], nominal)
    close = kind in "biu" and int(array.max()) - int(array.min()) <= 4 * len(array) + 1024
    if close and int(array.max()) < 2**63:
        return _code_range(name, array, nominal)
    order = np.argsort(array)
    ordered = array[order]
    fresh = np.concatenate(([False], ordered[1:] != ordered[:-1]))
    codes = np.empty(len(array), dtype=np.int32)
    codes[order] = np.cumsum(fresh, dtype=np.int32)
    fresh[0] = True
    return Column(name, codes, ordered[fresh], nominal)


def _code_range(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    """Code whole numbers that lie close together, by a table."""
    low, high = int(array.min()), int(array.max())
    shifted = np.empty(len(array), dtype=narrowest(high - low + 1))
    np.subtract(array, low, out=shifted, casting="unsafe", dtype=np.int64)
    if high - low < FEW:
        present = np.array([bool((shifted == place).any()) for place in range(high - low + 1)])
    else:
        present = np.bincount(shifted) > 0
    labels = np.flatnonzero(present) + low
    codes = shifted if present.all() else (np.cumsum(present) - 1).astype(shifted.dtype)[shifted]
    return Column(name, codes, (labels > 0 if array.dtype.kind == "b" else labels).tolist(), nominal)
