"""Apply a map to a column of any frame, in one of three ways; lazy frames stay lazy.

A map of few pieces is a narwhals expression. Engines take minutes to plan an expression of thousands of
choices; for such maps Polars, Dask and Ibis call a function for batches of the column, and DuckDB and Spark
are given SQL that looks the piece up in lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import narwhals as nw
import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name
from calibrant.frames import repeated_names
from calibrant.inputs import numeric_vector
from calibrant.recalibration.maps.base import Algebra, Map
from calibrant.recalibration.sql import (
    DIALECTS,
    Sql,
    SqlAlgebra,
    is_probability,
    quoted_column,
    search_steps,
    sql_of,
)
from calibrant.results import Array

MIN_LOOKUP_PIECES = 300  # pieces from which planning a tree takes longer than anything here
USABLE_COLUMN = '"calibrant usable"'


@dataclass(slots=True)
class LookupAlgebra(SqlAlgebra):
    """Functions of maps for DuckDB: each step becomes a column, which one expression would have to repeat."""

    columns: list[tuple[str, str]] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    def pieces(self, p: Sql, cuts: Array, tables: Sequence[Array], formula: Callable[..., Sql]) -> Sql:
        if not len(cuts):
            return formula(*(self.number(float(table[0])) for table in tables))
        steps, filled = search_steps(cuts)
        places, piece = self.listed(filled), "1"  # the first place of lists
        for step in steps:  # sums: DuckDB takes longer for choices that differ from row to row
            above = f"({places}[{piece} + {step - 1}] <= {p.text})::INTEGER"
            piece = self.column(f"{piece} + {above} * {step}")
        return formula(*(Sql(f"{self.listed(table)}[{piece}]") for table in tables))

    def column(self, text: str) -> str:
        name = f'"calibrant step {len(self.columns)}"'
        self.columns.append((name, text))
        return name

    def listed(self, numbers: npt.NDArray[Any]) -> str:
        name = f'"calibrant list {len(self.lists)}"'
        self.lists[name] = numbers.tolist()
        return name


class _Counted(SqlAlgebra):
    most = 0

    def pieces(self, p: Sql, cuts: Array, tables: Sequence[Array], formula: Callable[..., Sql]) -> Sql:
        self.most = max(self.most, len(cuts))
        return p


def has_many_pieces(fitted: Map) -> bool:
    counted = _Counted()
    fitted.expression(Sql("p"), counted)
    return counted.most >= MIN_LOOKUP_PIECES


def apply_many_pieces(table: Any, fitted: Map, prediction: str, into: str) -> Any:
    """Return the native lazy frame with the new column, or None where only a tree is known to work."""
    engine, frame = table.implementation, table.to_native()
    if engine.is_polars():
        return _by_polars(frame, fitted, prediction, into)
    if engine.is_dask():
        return _by_dask(frame, fitted, prediction, into)
    if engine.is_duckdb():
        for text in _lookups(fitted, prediction, into):
            frame = frame.project(text)
        return frame
    if engine.is_ibis() and frame.get_backend().name == "duckdb":
        return _by_ibis(frame, fitted, prediction, into)
    return None


def _predicted(fitted: Map, p: Array, columns: Mapping[str, Any] | None = None) -> tuple[Array, list[str]]:
    with np.errstate(invalid="ignore"):
        usable = (p >= 0) & (p <= 1)
    kept = None if columns is None else {name: column[usable] for name, column in columns.items()}
    q = np.full(len(p), np.nan)
    q[usable] = fitted.predict(p[usable], kept)
    remarks = fitted.remarks(p[usable], kept) if kept is not None and usable.any() else ()
    return q, list(remarks)


def _by_polars(frame: Any, fitted: Map, prediction: str, into: str) -> Any:
    import polars as pl

    def mapped(part: Any) -> Any:
        return pl.Series(_predicted(fitted, part.to_numpy())[0], nan_to_null=True)

    column = pl.col(prediction).cast(pl.Float64)
    return frame.with_columns(
        column.map_batches(mapped, return_dtype=pl.Float64, is_elementwise=True).alias(into)
    )


def _by_dask(frame: Any, fitted: Map, prediction: str, into: str) -> Any:
    import pandas as pd

    def mapped(part: Any) -> Any:
        return pd.Series(_predicted(fitted, part.to_numpy(np.float64, na_value=np.nan))[0], part.index)

    return frame.assign(**{into: frame[prediction].map_partitions(mapped, meta=(into, "f8"))})


def _by_ibis(frame: Any, fitted: Map, prediction: str, into: str) -> Any:
    import ibis
    import pyarrow as pa

    def mapped(p: Any) -> Any:  # of rows that are not null
        return pa.array(fitted.predict(p.to_numpy(zero_copy_only=False)))

    signature = (("float64",), "float64")
    function = ibis.udf.scalar.pyarrow(mapped, name=f"calibrant_{uuid4().hex}", signature=signature)
    p = frame[prediction].cast("float64")
    return frame.mutate(**{into: function(ibis.ifelse(_usable(p), p, None))})


def _lookups(fitted: Map, prediction: str, into: str) -> list[str]:
    """Return what DuckDB selects in each of a chain of queries; the last one adds the new column."""
    p, target = (quoted_column(name, DIALECTS["duckdb"]) for name in (prediction, into))
    algebra = LookupAlgebra()
    value = algebra.column(fitted.expression(Sql(USABLE_COLUMN), algebra).text)
    # one text for each list: as many numbers would take DuckDB seconds to plan
    lists = [f"'{numbers}'::DOUBLE[] AS {name}" for name, numbers in algebra.lists.items()]
    inside = is_probability(Sql(f"{p}::DOUBLE"), "duckdb")
    usable = f"CASE WHEN {inside} THEN {p}::DOUBLE END AS {USABLE_COLUMN}"
    helpers = ", ".join([USABLE_COLUMN, *algebra.lists, *(name for name, _ in algebra.columns)])
    return [
        ", ".join(["*", usable, *lists]),
        *(f"*, {text} AS {name}" for name, text in algebra.columns),
        f"* EXCLUDE ({helpers}), CASE WHEN {USABLE_COLUMN} IS NOT NULL THEN {value} END AS {target}",
    ]


class FrameAlgebra(Algebra):
    def log(self, x: Any) -> Any:
        return x.log()

    def exp(self, x: Any) -> Any:
        return x.exp()

    def clip(self, x: Any, low: float, high: float) -> Any:
        return x.clip(low, high)

    def greatest(self, columns: Sequence[Any]) -> Any:
        return nw.max_horizontal(*columns)

    def when(self, condition: Any, then: Any, otherwise: Any) -> Any:
        return nw.when(condition).then(then).otherwise(otherwise)

    def number(self, value: float) -> Any:
        return nw.lit(value)


def checked_frame(frame: Any, prediction: str, into: str) -> Any:
    try:
        table: Any = nw.from_native(frame)
    except TypeError:
        hint = "pass arrays to predict"
        raise InvalidInputError(
            "frame", "must be a data frame", f"got {type(frame).__name__}", hint
        ) from None
    except nw.exceptions.DuplicateError as error:
        raise repeated_names("frame", error).with_parts(hint="rename them") from None
    schema = table.collect_schema()
    if prediction not in schema.names():
        raise reject_name("column", prediction, schema.names())
    dtype = schema[prediction]
    if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
        rule, hint = "must be numeric", "cast it to numbers between 0 and 1"
        raise InvalidInputError(f"column {prediction!r}", rule, f"got dtype {dtype}", hint)
    if not isinstance(into, str) or not into:
        raise InvalidInputError("into", "must be a column name", f"got {into!r}")
    if into in schema.names():
        hint = "name another with into="
        raise InvalidInputError(f"column {into!r}", "must not be in the frame already", hint=hint)
    return table


def lazily(table: Any, fitted: Map, prediction: str, into: str) -> Any:
    if table.implementation.is_spark_like():
        from pyspark.sql import functions

        # as SQL, which has Spark look pieces up: it would take minutes to compile choices
        text = sql_of(fitted, prediction, "spark", 0.0)
        return table.to_native().withColumn(into, functions.expr(text))
    if has_many_pieces(fitted):
        applied = apply_many_pieces(table, fitted, prediction, into)
        if applied is not None:
            return applied
    column = nw.col(prediction).cast(nw.Float64)
    mapped = fitted.expression(column, FrameAlgebra())
    return table.with_columns(nw.when(_usable(column)).then(mapped).alias(into)).to_native()


def _usable(p: Any) -> Any:
    # p - p: DuckDB may take p <= 1 for true and isnan for false for NaN (see `sql.is_probability`)
    return (p >= 0) & (p <= 1) & (p - p == 0)


def eagerly(
    table: Any, fitted: Map, prediction: str, into: str, columns: Mapping[str, Any] | None
) -> tuple[Any, Array, list[str]]:
    p = _numbers(table[prediction], prediction)
    q, remarks = _predicted(fitted, p, columns)
    out = table.with_columns(nw.new_series(into, q, nw.Float64, backend=nw.get_native_namespace(table)))
    if np.isnan(q).any():
        out = out.with_columns(nw.when(~nw.col(into).is_nan()).then(nw.col(into)).alias(into))
    return out.to_native(), p, remarks


def _numbers(column: Any, name: str) -> Array:
    if len(column) and column.dtype in (nw.Object, nw.Unknown):  # Python objects, or nothing but gaps
        return np.asarray(numeric_vector(column.to_numpy(), f"column {name!r}"), dtype=np.float64)
    if isinstance(column.dtype, nw.Decimal):  # through text: PyArrow makes 0.30000000000000004 of 0.3
        column = column.cast(nw.String)
    elif column.dtype.is_integer():  # PyArrow refuses to make doubles of large ones: all are out of range
        column = column.clip(-1 if column.dtype.is_signed_integer() else None, 2)
    return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
