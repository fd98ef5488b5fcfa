"""The one aggregation, written once against narwhals: any engine scans and groups, only cells come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import DROP_MISSING, Hint, InvalidInputError, MissingDependencyError, Place
from calibrant.formatting import pluralize
from calibrant.frames import check_columns, collect, from_xarray, open_frame
from calibrant.inputs import check_same_length, numeric_vector, range_hint, to_array
from calibrant.io.session import identifier
from calibrant.io.sources import SourceColumn
from calibrant.records import Missing
from calibrant.sketch import cells as grid
from calibrant.sketch.cells import SUMS, CellTable, Contents
from calibrant.sketch.labels import (
    LISTS,
    Label,
    Reader,
    duration,
    label_sql,
    labels_of,
    moment,
    ordered_labels,
    plain_label,
    refuse_truth_beside_numbers,
)

V, Y, W, CODE = "calibrant_v", "calibrant_y", "calibrant_w", "calibrant_code"
COUNT, LOW, HIGH = "calibrant_count", "calibrant_low", "calibrant_high"
NO_LISTS = "choose one element, or make it text"
MAX_GROUPS = 100_000  # of a sketch, unless the caller allows more: each takes a kilobyte and more


def refuse_many_groups(count: int, names: Sequence[str], max_groups: int) -> None:
    if count > max_groups:
        subject = f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
        rule, got = f"must have at most {max_groups:,} groups", f"got {count:,} or more"
        hint = "group by fewer values, or raise max_groups (--max-groups)"
        raise InvalidInputError(subject, rule, got, hint)


@dataclass(frozen=True, slots=True)
class Columns:
    outcome: str
    prediction: str
    weight: str | None = None
    by: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        return [self.outcome, self.prediction, *([self.weight] if self.weight else [])]

    @property
    def wanted(self) -> list[str]:
        return [*self.numbers, *self.by]


def aggregate(frame: Any, columns: Columns, cells: int) -> Contents:
    readers: list[Reader] | None = None
    if type(frame).__name__ == "DuckDBPyRelation":
        frame, readers = _labeled(frame, columns)
    return from_rows(collected(cell_frame(frame, columns, cells)), columns, cells, readers)


def as_frame(data: Any, columns: Columns) -> Any:
    """Return a mapping of arrays or an xarray Dataset as a frame, and any frame as it is."""
    import narwhals as nw

    arrays = from_xarray(data, columns.wanted)
    if not isinstance(arrays, Mapping):
        return arrays
    outcome, prediction, *others = columns.wanted
    check_columns(columns.wanted, list(arrays))
    converted: dict[str, Any] = {
        name: _values(to_array(arrays[name], f"column {name!r}"))
        if name in columns.by
        else numeric_vector(arrays[name], f"column {name!r}").astype(np.float64)
        for name in columns.wanted
    }
    for name in (outcome, *others):
        check_same_length(
            converted[name], converted[prediction], (f"column {name!r}", f"column {prediction!r}")
        )
    for backend in ("pyarrow", "polars", "pandas"):
        if find_spec(backend) is not None:
            return nw.from_dict(converted, backend=backend)
    hint = "install one of them, or pass arrays to Sketch.from_arrays"
    raise MissingDependencyError("a mapping", "needs pyarrow, polars or pandas", hint=hint)


def _values(array: npt.NDArray[Any]) -> list[Any]:
    """Return an array as Python values; numpy would make whole numbers of times in nanoseconds."""
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] == "ns":
        return [plain_label(item) for item in array]
    return list(array.tolist())


def _labeled(relation: Any, columns: Columns) -> tuple[Any, list[Reader] | None]:
    """Let DuckDB write the labels itself: what it hands to numpy has lost zones, decimals and dates."""
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    if not set(columns.wanted) <= set(kinds):
        return relation, None  # refused by name a little later
    numbers = [identifier(name) for name in dict.fromkeys(columns.wanted) if name not in columns.by]
    labels = [
        f"{label_sql(SourceColumn(name, identifier(name), kinds[name]))} AS {identifier(name)}"
        for name in columns.by
    ]
    readers = [labels_of(kinds[name])[1] for name in columns.by]
    return relation.project(", ".join([*numbers, *labels])), readers


def _key(table: Any, name: str) -> Any:
    """Return a column of groups; Dask cannot put parts together whose text is an Arrow dictionary."""
    import narwhals as nw

    dask = table.implementation is nw.Implementation.DASK
    if dask and str(table.to_native().dtypes[name]).startswith("dictionary<values=string"):
        return nw.col(name).cast(nw.String())
    return nw.col(name)


def cell_frame(frame: Any, columns: Columns, cells: int) -> Any:
    """Return the narwhals frame whose rows are the cells; lazy engines have not read anything yet."""
    import narwhals as nw

    table = _opened(frame, columns)
    number = nw.Float64()
    names = {V: columns.prediction, Y: columns.outcome, **({W: columns.weight} if columns.weight else {})}
    keys = [f"calibrant_by_{place}" for place in range(len(columns.by))]
    table = table.select(
        *(nw.col(source).cast(number).alias(name) for name, source in names.items()),
        *(_key(table, source).alias(key) for key, source in zip(keys, columns.by, strict=True)),
    )
    table = table.with_columns(*(_without_nan(name, table.implementation) for name in names))
    v, y, w = nw.col(V), nw.col(Y), nw.col(W)
    good = (v >= 0) & (v <= 1) & (y >= 0) & (y <= 1)
    if columns.weight:
        good = good & (w > 0) & (w < float("inf"))
    table = table.with_columns(good.fill_null(False).alias("calibrant_good"))
    cell = (v * cells).floor().cast(number) + (v > 0).cast(number)
    code = nw.when(nw.col("calibrant_good")).then(cell).otherwise(_reason(columns, cells))
    terms = {"wv": v, "wy": y, "wyv": v * y, "wv(1-v)": v * (1 - v)}
    if columns.weight:
        terms = {"w": w, "ww": w * w, **{name: w * term for name, term in terms.items()}}
        terms["wwv(1-v)"] = w * w * v * (1 - v)
    terms["mixed"] = y * (1 - y)
    table = table.with_columns(code.cast(nw.Int64()).alias(CODE), *(t.alias(n) for n, t in terms.items()))
    # terms are columns by now: every engine adds these up fast
    return table.group_by(*keys, CODE).agg(
        nw.len().alias(COUNT),
        *(nw.col(name).sum() for name in terms),
        nw.col(V).min().alias(LOW),
        nw.col(V).max().alias(HIGH),
    )


def _reason(columns: Columns, cells: int) -> Any:
    import narwhals as nw

    v, y, w = nw.col(V), nw.col(Y), nw.col(W)
    missing = [v.is_null(), y.is_null(), w.is_null()]
    outside = [(v < 0) | (v > 1), (y < 0) | (y > 1), (w < 0) | (w == float("inf"))]
    weightless, *reasons = (nw.lit(float(grid.reject_code(cells, name))) for name in grid.REJECTS)
    reason: Any = weightless
    for name, code, broken in reversed(list(zip(grid.REJECTS[1:], reasons, missing + outside, strict=True))):
        if columns.weight or not name.startswith("weight"):
            reason = nw.when(broken).then(code).otherwise(reason)
    return reason


def _without_nan(name: str, engine: Any) -> Any:
    """Return a column, null for NaN: DuckDB may take is_nan for false, and so may is_finite of Ibis."""
    import narwhals as nw

    column = nw.col(name)
    finite = column - column == 0 if engine.is_ibis() else column.is_finite()
    infinite = nw.when(column.abs() == float("inf")).then(column)
    return nw.when(finite).then(column).otherwise(infinite).alias(name)


def _opened(frame: Any, columns: Columns) -> Any:
    import narwhals as nw

    table = open_frame(frame, "frame", "must be a data frame", "pass arrays to Sketch.from_arrays")
    schema = table.collect_schema()
    check_columns(columns.wanted, schema.names())
    for name in columns.by:
        objects = schema[name] == nw.Object and isinstance(table, nw.DataFrame)
        lists = objects and any(isinstance(item, LISTS) for item in table[name].to_list())
        if schema[name].is_nested() or schema[name] == nw.Binary or lists:
            rule, got = "must hold one value per row", f"got dtype {schema[name]}"
            raise InvalidInputError(f"column {name!r}", rule, got, NO_LISTS)
    for name in columns.numbers:
        if schema[name] == nw.Object and isinstance(table, nw.DataFrame):
            # Python objects: truth values with None, decimals; text among them is refused
            values = numeric_vector(table[name].to_numpy(), f"column {name!r}")
            made = nw.new_series(name, values.astype(np.float64), backend=table.implementation)
            table = table.with_columns(made)
        elif isinstance(schema[name], nw.Decimal) and isinstance(table, nw.DataFrame):
            # through text, because PyArrow makes 0.30000000000000004 of 0.3
            table = table.with_columns(nw.col(name).cast(nw.String).cast(nw.Float64))
        elif not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            got = f"got dtype {schema[name]}"
            raise InvalidInputError(
                f"column {name!r}", "must be numeric", got, "cast it, or map the labels to 0 and 1"
            )
    return table


def collected(frame: Any) -> dict[str, list[Any] | npt.NDArray[Any]]:
    """Return the rows of a narwhals frame: numpy arrays, and lists for the columns of labels."""
    native = frame.to_native()
    if hasattr(native, "fetchnumpy"):  # DuckDB's own way needs no further package
        return {name: _plain(column) for name, column in native.fetchnumpy().items()}
    try:
        frame = collect(frame)
    except TypeError as error:  # Dask looks into a column of objects only now
        if "unhashable" not in str(error):
            raise
        raise InvalidInputError(
            "a column of groups", "must hold one value per row", "got lists", NO_LISTS
        ) from None
    return {
        name: _labels(frame[name]) if name.startswith("calibrant_by_") else frame[name].to_numpy()
        for name in frame.columns
    }


def _labels(series: Any) -> list[Any]:
    """Return labels as Python values; nanoseconds, which end in 2262, only where a time is kept in them."""
    import narwhals as nw

    present = series.drop_nulls()  # first: pandas turns whole numbers next to a gap into floats
    fine = getattr(series.dtype, "time_unit", "") == "ns"
    tick = 1 if fine else 1000  # nanoseconds
    if isinstance(series.dtype, nw.Datetime):
        zone = series.dtype.time_zone is not None
        times = present.dt.timestamp("ns" if fine else "us").to_list()
        read = [moment(int(item) * tick, zone) for item in times]
    elif isinstance(series.dtype, nw.Duration):
        spans = present.dt.total_nanoseconds() if fine else present.dt.total_microseconds()
        read = [duration(int(item) * tick) for item in spans.to_list()]
    else:
        read = present.to_list()
    known = iter(read)
    return [None if gap else next(known) for gap in series.is_null().to_list()]


def _plain(column: npt.NDArray[Any]) -> list[Any] | npt.NDArray[Any]:
    if isinstance(column, np.ma.MaskedArray) or column.dtype.kind not in "iuf":
        return list(column.tolist())  # a masked entry becomes None
    return column


def from_rows(
    rows: dict[str, Any], columns: Columns, cells: int, readers: list[Reader] | None = None
) -> Contents:
    """Put what an engine returned into one table, rejects without sums, groups in a fixed order."""
    codes = np.asarray(rows[CODE], dtype=np.int64)
    counts = np.asarray(rows[COUNT], dtype=np.int64)
    # NaN is what an engine left empty: the sums of a reject cell
    result = {name: np.array(rows[name], dtype=np.float64) for name in SUMS if name in rows}
    if not columns.weight:
        result |= {"w": counts.astype(np.float64), "ww": counts.astype(np.float64)}
        result["wwv(1-v)"] = result["wv(1-v)"]
    good = codes < cells + 2
    sums = np.where(good, np.array([result[name] for name in SUMS]), 0.0)
    if not np.all(np.isfinite(sums)):
        raise InvalidInputError(
            f"column {columns.weight!r}", "must have finite sums of squares", hint="scale the weights"
        )
    low, high = (np.where(good, np.array(rows[name], dtype=np.float64), 0.0) for name in (LOW, HIGH))
    raw = [rows[f"calibrant_by_{place}"] for place in range(len(columns.by))]
    labels, groups = numbered(raw, len(codes), readers or [plain_label] * len(raw))
    keys = groups * grid.codes_in_a_group(cells) + codes
    table = grid.merged_tables([CellTable(keys, counts, sums, low + 0.0, high + 0.0)])
    return Contents(cells, columns.by, labels, table)


def numbered(
    columns: list[Any], size: int, readers: list[Reader]
) -> tuple[tuple[Label, ...], npt.NDArray[np.int64]]:
    if not columns:
        return ((),), np.zeros(size, dtype=np.int64)
    read = [_read_once(column, reader) for column, reader in zip(columns, readers, strict=True)]
    rows = list(zip(*read, strict=True))
    labels = ordered_labels(set(rows))
    numbers = {label: number for number, label in enumerate(labels)}
    return labels, np.fromiter((numbers[row] for row in rows), dtype=np.int64, count=size)


def _read_once(column: Any, reader: Reader) -> list[Any]:
    """Read each distinct label once; there are far more cells than labels."""
    known: dict[Any, Any] = {}
    read = []
    for item in column:
        key = (type(item), item if item.__hash__ else reader(item))
        if key not in known:
            known[key] = None if item is None else reader(item)
        read.append(known[key])
    refuse_truth_beside_numbers("a column of groups", known.values())
    return read


RULES = {
    "missing": "must not be missing",
    "outside": "must lie in [0, 1]",
    "negative": "must be finite and not negative",
}


def refuse(
    rejects: Mapping[str, int],
    columns: Columns,
    missing: Missing,
    invalid: Missing,
    frame: Any,
    inside: Columns | None = None,
    first: Callable[[str, str], tuple[str, Place] | None] | None = None,
) -> None:
    """Raise for the first kind of bad row that the user did not ask to drop; `first` finds it in files."""
    for reason, count in rejects.items():
        if reason == grid.ZERO_WEIGHT or (missing if "missing" in reason else invalid) == "drop":
            continue
        role, word = reason.split()[0], next(word for word in RULES if word in reason)
        name, rows = getattr(columns, role), pluralize(count, "row")
        hint: str
        text, place = (first(str(name), word) if first else None) or ("", None)
        if word == "missing":
            found, hint = "got no value" if place else f"got {rows} without a value", DROP_MISSING
        else:
            low, high = _range(frame, getattr(inside or columns, role))
            found = f"got {text}" if place else f"got values from {low:g} to {high:g} ({rows})"
            hint = range_hint(low, high)
        if word == "negative":
            hint = Hint("pass {} to leave such rows out", invalid="drop")
        place = place and place._replace(rows=count)
        raise InvalidInputError(f"column {name!r}", RULES[word], found, hint, place)


def _range(frame: Any, name: str) -> tuple[float, float]:
    import narwhals as nw

    column = nw.col(name).cast(nw.Float64())
    table: Any = nw.from_native(frame).select(nw.col(name).cast(nw.Float64()))
    table = table.filter(~column.is_nan()).select(column.min().alias("low"), column.max().alias("high"))
    row = collected(table)
    return float(row["low"][0]), float(row["high"][0])
