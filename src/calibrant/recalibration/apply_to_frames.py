"""Apply a map to a column of any frame; lazy frames stay lazy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.inputs import numeric_vector
from calibrant.recalibration.long_maps import has_many_pieces, without_a_tree
from calibrant.recalibration.maps.algebra import choice_tree
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.sql import sql_of
from calibrant.results import Array


class FrameAlgebra:
    """The functions of maps, as narwhals expressions."""

    def log(self, x: Any) -> Any:
        """Return the natural logarithm."""
        return x.log()

    def exp(self, x: Any) -> Any:
        """Return e to the power x."""
        return x.exp()

    def clip(self, x: Any, low: float, high: float) -> Any:
        """Return x held within [low, high]."""
        return x.clip(low, high)

    def greatest(self, columns: Sequence[Any]) -> Any:
        """Return the largest of several columns."""
        import narwhals as nw

        return nw.max_horizontal(*columns)

    def when(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return one of two expressions."""
        import narwhals as nw

        return nw.when(condition).then(then).otherwise(otherwise)

    def number(self, value: float) -> Any:
        """Return a constant."""
        import narwhals as nw

        return nw.lit(value)

    def pieces(self, p: Any, cuts: Array, tables: Sequence[Array], formula: Callable[..., Any]) -> Any:
        """Return a balanced tree of choices."""
        return choice_tree(self, p, cuts, tables, formula)


def checked_frame(frame: Any, prediction: str, into: str) -> Any:
    """Return the frame as narwhals knows it, or say what is wrong with it."""
    import narwhals as nw

    try:
        table: Any = nw.from_native(frame)
    except TypeError:
        hint = "pass arrays to predict"
        raise InvalidInputError(
            sentence("frame", "must be a data frame", f"got {type(frame).__name__}", hint)
        ) from None
    except nw.exceptions.DuplicateError as error:
        got = "got " + ", ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        raise InvalidInputError(sentence("frame", "must have columns of different names", got)) from None
    schema = table.collect_schema()
    if prediction not in schema.names():
        raise reject_name("column", prediction, schema.names())
    dtype = schema[prediction]
    if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
        rule, hint = "must be numeric", "cast it to numbers between 0 and 1"
        raise InvalidInputError(sentence(f"column {prediction!r}", rule, f"got dtype {dtype}", hint))
    if not isinstance(into, str) or not into:
        raise InvalidInputError(sentence("into", "must be a column name", f"got {into!r}"))
    return table


def lazily(table: Any, fitted: Map, prediction: str, into: str) -> Any:
    """Add the column as an expression: nothing is read, and rows without a usable prediction get null."""
    import narwhals as nw

    if table.implementation.is_spark_like():
        return _by_spark(table.to_native(), sql_of(fitted, prediction, "spark", 0.0), into)
    if has_many_pieces(fitted):
        looked_up = without_a_tree(table, fitted, prediction, into)
        if looked_up is not None:
            return looked_up
    column = nw.col(prediction).cast(nw.Float64)
    mapped = fitted.expression(column, FrameAlgebra())
    # p - p, because DuckDB may take p <= 1 for true and isnan for false for NaN (see sql.is_probability)
    usable = (column >= 0) & (column <= 1) & (column - column == 0)
    return table.with_columns(nw.when(usable).then(mapped).alias(into)).to_native()


def _by_spark(frame: Any, text: str, into: str) -> Any:
    """Add the column as SQL, which has Spark look pieces up; it would take minutes to compile choices."""
    from pyspark.sql import functions

    return frame.withColumn(into, functions.expr(text))


def eagerly(table: Any, predict: Any, prediction: str, into: str) -> tuple[Any, Array]:
    """Add the column by numbers; return the frame and the predictions as an array, NaN for missing."""
    import narwhals as nw

    p = _numbers(table[prediction], prediction)
    with np.errstate(invalid="ignore"):
        usable = (p >= 0) & (p <= 1)
    q = np.full(len(p), np.nan)
    q[usable] = predict(p[usable], usable)
    series = nw.new_series(into, q, nw.Float64, backend=nw.get_native_namespace(table))
    out = table.with_columns(series)
    if not usable.all():
        out = out.with_columns(nw.when(~nw.col(into).is_nan()).then(nw.col(into)).alias(into))
    return out.to_native(), p


def _numbers(column: Any, name: str) -> Array:
    """Return a column in memory as float64, NaN for missing."""
    import narwhals as nw

    if len(column) and column.dtype in (nw.Object, nw.Unknown):  # Python objects, or nothing but gaps
        return np.asarray(numeric_vector(column.to_numpy(), f"column {name!r}"), dtype=np.float64)
    if isinstance(column.dtype, nw.Decimal):  # through text: PyArrow makes 0.30000000000000004 of 0.3
        column = column.cast(nw.String)
    elif column.dtype.is_integer():  # PyArrow refuses to make doubles of large ones: all are out of range
        column = column.clip(-1 if column.dtype.is_signed_integer() else None, 2)
    return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
