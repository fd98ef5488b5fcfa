"""Maps of many pieces on lazy frames: engines take minutes to plan a tree of thousands of choices.

Polars and Dask call the map for parts of the column; DuckDB looks its pieces up in lists, as for files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.recalibration.lookups import LookupAlgebra, list_type
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.sql import DIALECTS, Sql, SqlAlgebra, is_probability, quoted_column
from calibrant.results import Array

MANY = 300  # pieces from which planning a tree takes longer than anything here
LONGEST = 10**8  # entries of lists
USABLE = '"calibrant usable"'


class _Counted(SqlAlgebra):
    """The functions of maps, of which nothing but the number of pieces is kept."""

    most = 0

    def pieces(self, p: Sql, cuts: Array, tables: Sequence[Array], formula: Callable[..., Sql]) -> Sql:
        """Note how many pieces there are."""
        self.most = max(self.most, len(cuts))
        return p


def has_many_pieces(fitted: Map) -> bool:
    """Return whether a tree of choices would be long."""
    counted = _Counted()
    fitted.expression(Sql("p"), counted)
    return counted.most >= MANY


def without_a_tree(table: Any, fitted: Map, prediction: str, into: str) -> Any:
    """Return the native lazy frame with the new column, or None where only a tree is known to work."""
    from calibrant.recalibration.long_maps_in_ibis import by_ibis

    engine, frame = table.implementation, table.to_native()
    ways = [
        (engine.is_polars(), _by_polars),
        (engine.is_dask(), _by_dask),
        (engine.is_duckdb(), _by_duckdb),
        (engine.is_ibis(), by_ibis),
    ]
    return next((way(frame, fitted, prediction, into) for serves, way in ways if serves), None)


def _predicted(fitted: Map, p: Array) -> Array:
    """Return the map of a part of a column, NaN where it holds no prediction."""
    with np.errstate(invalid="ignore"):
        usable = (p >= 0) & (p <= 1)
    q = np.full(len(p), np.nan)
    q[usable] = fitted.predict(p[usable])
    return q


def _by_polars(frame: Any, fitted: Map, prediction: str, into: str) -> Any:
    import polars as pl

    def mapped(part: Any) -> Any:
        return pl.Series(_predicted(fitted, part.to_numpy()), nan_to_null=True)

    column = pl.col(prediction).cast(pl.Float64)
    return frame.with_columns(
        column.map_batches(mapped, return_dtype=pl.Float64, is_elementwise=True).alias(into)
    )


def _by_dask(frame: Any, fitted: Map, prediction: str, into: str) -> Any:
    import pandas as pd

    def mapped(part: Any) -> Any:
        return pd.Series(_predicted(fitted, part.to_numpy(np.float64, na_value=np.nan)), part.index)

    return frame.assign(**{into: frame[prediction].map_partitions(mapped, meta=(into, "f8"))})


def _by_duckdb(frame: Any, fitted: Map, prediction: str, into: str) -> Any:
    p, target = (quoted_column(name, DIALECTS["duckdb"]) for name in (prediction, into))
    algebra = LookupAlgebra(most=LONGEST)
    value = algebra.column(fitted.expression(Sql(USABLE), algebra).text)
    lists = [  # one text for each: as many numbers would take DuckDB seconds to plan
        f"'{numbers}'::{list_type(numbers)} AS {name}" for name, numbers in algebra.lists.items()
    ]
    inside = is_probability(Sql(f"{p}::DOUBLE"), "duckdb")
    usable = f"CASE WHEN {inside} THEN {p}::DOUBLE END AS {USABLE}"
    rows = frame.project(", ".join(["*", usable, *lists]))
    for name, text in algebra.columns:
        rows = rows.project(f"*, {text} AS {name}")
    helpers = ", ".join([USABLE, *algebra.lists, *(name for name, _ in algebra.columns)])
    made = f"CASE WHEN {USABLE} IS NOT NULL THEN {value} END AS {target}"
    known = into.lower() in (name.lower() for name in frame.columns)
    return rows.project(f"* EXCLUDE ({helpers}) " + (f"REPLACE ({made})" if known else f", {made}"))
