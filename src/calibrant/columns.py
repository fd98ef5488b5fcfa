"""Columns that come with the predictions: covariates, groups and clusters, as codes or as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name
from calibrant.formatting import pluralize
from calibrant.frames import collect, open_frame
from calibrant.inputs import check_aligned, check_same_length, is_missing, missing_among, to_array
from calibrant.results import Array

Codes = npt.NDArray[Any]


def smallest_dtype(count: int) -> np.dtype[Any]:
    return np.min_scalar_type(max(0, count - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One covariate: `codes` of its sorted distinct `labels`; missing has code 0 and label None."""

    name: str
    codes: Codes
    labels: Sequence[Any] | npt.NDArray[Any]
    nominal: bool  # categories without an order
    missing: bool = False

    def take(self, rows: npt.NDArray[Any]) -> Column:
        return replace(self, codes=self.codes[rows])

    def drop_unused_labels(self, rows: npt.NDArray[Any]) -> Column:
        present = np.zeros(len(self.labels), dtype=bool)
        present[self.codes[rows]] = True
        if present.all():
            return self
        codes = (np.cumsum(present) - present).astype(self.codes.dtype)[self.codes]
        labels = [label for label, kept in zip(self.labels, present, strict=True) if kept]
        return replace(self, codes=codes, labels=labels, missing=self.missing and bool(present[0]))


def code_labels(
    name: str, first: npt.NDArray[Any], labels: list[Any], nominal: bool, order: Sequence[Any] | None = None
) -> Column:
    """Renumber codes by the order given, or that of the labels' names; missing comes first."""
    known = [label for label in labels if label is not None]
    places = None if order is None else {label: place for place, label in enumerate(order)}
    known.sort(key=lambda one: places[one] if places else (type(one).__name__, str(one)))
    gaps = len(known) < len(labels)
    table = [None, *known] if gaps else known
    place = {label: code for code, label in enumerate(table)}
    codes = np.array([place[label] for label in labels], dtype=np.int32)
    return Column(name, codes[first], table, nominal, gaps)


def first_codes(name: str, values: Any) -> tuple[npt.NDArray[Any], list[Any]]:
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
            return np.asarray(indices), labels
    table: dict[Any, int] = {}
    try:
        codes = np.array([table.setdefault(item, len(table)) for item in values], dtype=np.int32)
    except TypeError:  # lists, dictionaries
        got = "got " + ", ".join(sorted({type(item).__name__ for item in values}))
        hint = "make a column of each part, or leave the column out"
        raise InvalidInputError(f"column {name!r}", "must have one value per row", got, hint) from None
    labels = [None if is_missing(item) else item for item in table]
    merged: dict[Any, int] = {}  # several kinds of missing are one
    renumbered = np.array([merged.setdefault(label, len(merged)) for label in labels], dtype=np.int32)
    return renumbered[codes], list(merged)


def code_numbers(name: str, array: npt.NDArray[Any], nominal: bool) -> Column:
    kind = array.dtype.kind
    if kind not in "biufmM":
        rule = "must be numbers, dates or categories"
        raise InvalidInputError(f"column {name!r}", rule, f"got dtype {array.dtype}")
    gaps = missing_among(array)
    if gaps.any():
        inner = code_numbers(name, array[~gaps], nominal)
        codes = np.zeros(len(array), dtype=np.int32)
        codes[~gaps] = inner.codes + 1
        return Column(name, codes, [None, *inner.labels], nominal, True)
    low, high = (int(array.min()), int(array.max())) if kind in "biu" and len(array) else (0, 2**63)
    if high - low > 4 * len(array) + 1024 or high >= 2**63:
        found, ranks = np.unique(array, return_inverse=True)
        return Column(name, ranks.reshape(-1), found, nominal)
    # whole numbers that lie close together are counted, not sorted
    shifted = np.empty(len(array), dtype=smallest_dtype(high - low + 1))
    np.subtract(array, low, out=shifted, casting="unsafe", dtype=np.int64)
    present = np.bincount(shifted) > 0
    labels = np.flatnonzero(present) + low
    codes = shifted if present.all() else (np.cumsum(present) - 1).astype(shifted.dtype)[shifted]
    return Column(name, codes, (labels > 0 if kind == "b" else labels).tolist(), nominal)


class OrderedValues(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of objects that remembers the order of its categories, lowest first."""

    order: tuple[Any, ...]

    @classmethod
    def of(cls, values: Sequence[Any], order: Sequence[Any]) -> Self:
        made = _objects(values).view(cls)
        made.order = tuple(order)
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.order = getattr(source, "order", ())


def joined_column(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    whole = np.concatenate(parts)
    first = parts[0]
    return OrderedValues.of(whole.tolist(), first.order) if isinstance(first, OrderedValues) else whole


MAX_EXACT_FLOAT = 2**53  # up to here a float is every whole number


def code_columns(
    data: Any, length: int, argument: str, nominal: Sequence[str] = (), labels: Any = None
) -> list[Column]:
    """Code every column of a frame, a mapping of columns or a two-dimensional array, all of `length` rows."""
    named = named_columns(data, argument)
    for subject, part in [(argument, data), *((f"{argument} {name!r}", values) for name, values in named)]:
        check_aligned(part, labels, (subject, "y_prob"))
    if not isinstance(nominal, str | Iterable):
        raise InvalidInputError("nominal", f"must name columns of {argument}", f"got {nominal!r}")
    unordered = {nominal} if isinstance(nominal, str) else set(map(str, nominal))
    wide = (_code(name, values, name in unordered) for name, values in named)
    columns = [replace(c, codes=c.codes.astype(smallest_dtype(len(c.labels)), copy=False)) for c in wide]
    if not columns:
        raise InvalidInputError(argument, "must have a column", "got none")
    for name in sorted(unordered.difference(column.name for column in columns)):
        raise reject_name("nominal", name, [column.name for column in columns])
    for column in columns:
        check_same_length(column.codes, range(length), (f"{argument} {column.name!r}", "y_prob"))
    return columns


def named_columns(data: Any, argument: str) -> list[tuple[str, Any]]:
    if isinstance(data, Mapping):
        return [(str(name), values) for name, values in data.items()]
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return [(f"x{j}", data[:, j]) for j in range(data.shape[1])]  # masked parts stay masked
    import narwhals as nw

    hint = "a data frame, a mapping of columns, a named series and a two-dimensional array can be used"
    frame = collect(open_frame(data, argument, "must be columns", hint, allow_series=True))
    if isinstance(frame, nw.Series):
        if frame.name in (None, ""):  # which its groups are called by
            hint = f'pass {argument}={{"region": series}}, or rename it'
            raise InvalidInputError(argument, "must have a name", "got a series without one", hint)
        return [(str(frame.name), frame)]
    if isinstance(frame, dict):
        return list(frame.items())
    return [(str(name), frame.get_column(name)) for name in frame.columns]


def _code(name: str, values: Any, nominal: bool) -> Column:
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and ordered_categories(series) is None:
        # objects (pandas) may be of any type, whatever the first ones are
        objects = isinstance(getattr(series.to_native(), "dtype", None), np.dtypes.ObjectDType)
        if series.dtype in (nw.Categorical, nw.String, nw.Enum) and not objects:
            return code_labels(name, *first_codes(name, series), True)
        if isinstance(series.dtype, nw.Decimal):
            numbers = series.cast(nw.String).cast(nw.Float64)  # PyArrow makes 0.30000000000000004 of 0.3
            if series.null_count() == len(series) or float(numbers.abs().max()) < MAX_EXACT_FLOAT:
                return code_numbers(name, exact_array(numbers), nominal)
            return _code_mixed(name, np.array(series.to_list(), dtype=object), nominal)
        if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone:
            values = series.dt.replace_time_zone(None).to_native()
    array = _array(values, f"column {name!r}")
    if isinstance(array, OrderedValues):
        return code_labels(name, *first_codes(name, array.tolist()), nominal, array.order)
    if array.ndim != 1:
        raise InvalidInputError(f"column {name!r}", "must be one-dimensional", f"got {array.shape}")
    if array.dtype.kind in "US":
        found, codes = np.unique(array, return_inverse=True)
        return code_labels(name, codes.reshape(-1), found.tolist(), True)
    if array.dtype.kind == "O":
        return _code_mixed(name, array, nominal)
    return code_numbers(name, array, nominal or array.dtype.kind == "b")


def exact_array(series: Any) -> npt.NDArray[Any]:
    """Return the values of a series, as Python integers where a missing value would make numpy round."""
    gaps = series.dtype.is_integer() and 0 < series.null_count() < len(series)
    if gaps and max(abs(int(series.min())), abs(int(series.max()))) > MAX_EXACT_FLOAT:
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
    first, labels = first_codes(name, array.tolist())
    decimals = [label for label in labels if isinstance(label, Decimal)]
    if all(one.is_finite() and one == one.to_integral_value() for one in decimals):
        labels = [int(label) if isinstance(label, Decimal) else label for label in labels]  # floats may round
    known = [label for label in labels if label is not None]
    if all(isinstance(item, Real | Decimal) and not isinstance(item, bool) for item in known):
        if any(isinstance(item, Integral) and abs(int(item)) > MAX_EXACT_FLOAT for item in known):
            return code_labels(name, first, labels, nominal, sorted(known))  # floats would round them
        numbers = np.array([np.nan if item is None else item for item in labels], dtype=np.float64)
        return code_numbers(name, numbers[first], nominal)
    order = None
    if len(set(map(type, known))) == 1 and isinstance(known[0], date | time | timedelta):
        with suppress(TypeError):  # some with a time zone and some without
            order = sorted(known)
    return code_labels(name, first, labels, nominal or order is None, order)


Kind = Literal["number", "moment", "ordered", "category"]
MOMENTS = (np.datetime64, np.timedelta64, date, time, timedelta)


@dataclass(frozen=True, slots=True)
class Feature:
    """One column: its name, what its values are, and for categories all that were seen, in their order."""

    name: str
    kind: Kind
    labels: tuple[Any, ...] = ()

    @classmethod
    def of(cls, column: Column) -> Feature:
        known = [label for label in column.labels if label is not None]
        types = set(map(type, known))  # a number may have as many labels as rows, but few types
        if not column.nominal and all(issubclass(one, Real | Decimal) for one in types):
            return cls(column.name, "number")
        if not column.nominal and all(issubclass(one, MOMENTS) for one in types):
            return cls(column.name, "moment")
        return cls(column.name, "category" if column.nominal else "ordered", tuple(map(_plain, known)))

    def numbers(self, column: Column) -> Array:
        """Return the number of each distinct label of a column, NaN for what is missing or not known."""
        if self.kind in ("ordered", "category"):
            place = {label: float(code) for code, label in enumerate(self.labels)}
            return np.array([place.get(_plain(label), np.nan) for label in column.labels])
        if self.kind == "number" and set(map(type, column.labels)) <= {float, int, np.float64}:
            return np.array(column.labels, dtype=float)
        value = _number if self.kind == "number" else _seconds
        numbers = np.full(len(column.labels), np.nan)
        for code, label in enumerate(column.labels):
            try:
                numbers[code] = np.nan if label is None else value(label)
            except (TypeError, ValueError):
                kind = "numbers" if self.kind == "number" else "dates or times"
                rule = f"must be {kind}, as when it was fitted"
                raise InvalidInputError(f"column {self.name!r}", rule, f"got {label!r}") from None
        return numbers

    def to_dict(self) -> dict[str, Any]:
        known = {"labels": list(self.labels)} if self.kind in ("ordered", "category") else {}
        return {"name": self.name, "kind": self.kind, **known}

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> Feature:
        name, kind, labels = item["name"], item["kind"], item.get("labels", [])
        if not isinstance(name, str):
            raise InvalidInputError("name of a column", "must be text", f"got {name!r}")
        if kind not in get_args(Kind):
            raise reject_name(f"kind of column {name!r}", str(kind), list(get_args(Kind)))
        if not isinstance(labels, list) or not all(isinstance(one, str | int | float) for one in labels):
            raise InvalidInputError(f"labels of column {name!r}", "must be texts or numbers")
        return cls(name, kind, tuple(labels))


Features = tuple[Feature, ...]


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
    if isinstance(label, time):
        return label.hour * 3600.0 + label.minute * 60.0 + label.second + label.microsecond * 1e-6
    if isinstance(label, date):
        label = np.datetime64(label.replace(tzinfo=None) if isinstance(label, datetime) else label)
    if isinstance(label, np.datetime64):
        label = label - np.datetime64(0, "s")
    if isinstance(label, timedelta | np.timedelta64):
        return float(np.timedelta64(label) / np.timedelta64(1, "s"))
    raise TypeError


@dataclass(frozen=True, slots=True, eq=False)
class EncodedColumns:
    """Rows as numbers, one column per feature; which values are missing, and how many were never seen."""

    features: Features
    rows: Array
    missing: tuple[npt.NDArray[np.bool_], ...]
    unseen: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], features: Features = ()) -> EncodedColumns:
        """Encode columns as `features` have it, by default those of the columns themselves."""
        features = features or tuple(map(Feature.of, columns))
        pairs = list(zip(features, columns, strict=True))
        rows = np.column_stack([feature.numbers(column)[column.codes] for feature, column in pairs])
        missing = tuple((column.codes == 0) & column.missing for column in columns)
        unknown = np.count_nonzero(np.isnan(rows), axis=0) - [np.count_nonzero(gaps) for gaps in missing]
        return cls(features, rows, missing, tuple(unknown.tolist()))

    @property
    def categorical(self) -> tuple[int, ...]:
        return tuple(k for k, feature in enumerate(self.features) if feature.kind == "category")

    @property
    def with_gaps(self) -> tuple[str, ...]:
        return tuple(one.name for one, gaps in zip(self.features, self.missing, strict=True) if gaps.any())

    def remarks(self, seen_missing: Sequence[str]) -> tuple[str, ...]:
        """Say what these rows have that the fit has not seen."""
        strange, gaps = [], []
        for feature, missing, unseen in zip(self.features, self.missing, self.unseen, strict=True):
            column = f"column {feature.name!r}"
            if unseen:
                rows = pluralize(unseen, "row")
                strange.append(f"{column} has categories that were not seen in the fit, in {rows}.")
            if missing.any() and feature.name not in seen_missing:
                rows = pluralize(int(missing.sum()), "row")
                gaps.append(f"{column} is missing in {rows}; in the fit it never was.")
        return (*strange, *gaps)


def columns_of(given: Any, rows: int, subject: str = "covariates") -> dict[str, npt.NDArray[Any]]:
    named = named_columns(given, subject)
    columns = {name: _array(column, f"{subject} {name!r}") for name, column in named}
    if not columns:
        raise InvalidInputError(subject, "must have a column", "got none")
    for name, column in columns.items():
        if column.shape != (rows,):
            got = f"got shape {column.shape} for {pluralize(rows, 'row')}"
            raise InvalidInputError(f"{subject} {name!r}", "must have one value per row", got)
    return columns


def joined_columns(
    covariates: Any, groups: Any, rows: int
) -> tuple[dict[str, npt.NDArray[Any]], tuple[str, ...]]:
    """Return the columns of both, and the names of groups; one name must not refer to two columns."""
    columns = {} if covariates is None else columns_of(covariates, rows)
    named = {} if groups is None else columns_of(groups, rows, "groups")
    for name in set(named) & set(columns):
        if not _equal(columns[name], named[name]):
            rule, got = "must have other names", f"got two columns named {name!r} that differ"
            raise InvalidInputError("covariates and groups", rule, got, "rename one of them")
    return {**columns, **named}, tuple(named)


def _equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return all(
        is_missing(a) == is_missing(b) and (is_missing(a) or (type(a) is type(b) and a == b))
        for a, b in zip(one.tolist(), other.tolist(), strict=True)
    )


def cluster_labels(given: Any, rows: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    columned = isinstance(given, Mapping) or hasattr(type(given), "columns")
    (labels,) = columns_of(given if columned else {"clusters": given}, rows, "clusters").values()
    return labels, missing_among(labels)


def number_labels(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], int]:
    """Number labels in an order that does not depend on the rows; those that Python calls equal are one."""
    if labels.dtype.kind != "O":
        found, codes = np.unique(labels, return_inverse=True)
        return codes.reshape(-1).astype(np.intp, copy=False), len(found)
    first, known = first_codes("labels", labels.tolist())
    try:
        order = sorted(range(len(known)), key=known.__getitem__)
    except TypeError:  # of several types: 0 and 0.0 are one label, 1 and "1" are two
        names = [
            ("", str(hash(x))) if isinstance(x, Real | Decimal) else (type(x).__name__, str(x)) for x in known
        ]
        order = sorted(range(len(known)), key=names.__getitem__)
    return np.argsort(order)[first], len(known)


def _array(column: Any, subject: str) -> npt.NDArray[Any]:
    """Return a column as it is: numpy would turn missing values and numbers in a mixed list into text."""
    import narwhals as nw

    if isinstance(column, OrderedValues):
        return column
    if getattr(column, "ordered", None) is True and hasattr(column, "categories"):  # a bare one of pandas
        return OrderedValues.of(list(column), column.categories.tolist())
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        order = ordered_categories(series)
        return exact_array(series) if order is None else OrderedValues.of(series.to_list(), order)
    array = to_array(column, subject)
    if array.dtype.kind in "US" and isinstance(column, list | tuple):
        return _objects(column)
    return array


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
