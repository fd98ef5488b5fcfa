"""How a map enters DuckDB's query: as SQL, as a function of Python, or as a column made beforehand."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.recalibration.lookups import LISTS, TooManyPiecesError, list_type, looked_up
from calibrant.recalibration.result import Recalibration
from calibrant.recalibration.sql import Sql, is_probability
from calibrant.scale.files import read_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

USABLE = '"calibrant usable"'  # the prediction, NULL unless it lies in [0, 1]
FUNCTION = "calibrant_predict"
TABLE = "calibrant_repaired"
MADE = '"calibrant made"'


class MapQuery(NamedTuple):
    """Rows with what the map needs, and the recalibrated prediction as SQL of them."""

    rows: str
    value: str


def made_beforehand(fitted: Recalibration) -> bool:
    """Return whether the column must be made in memory: only a scan by one thread then keeps its order."""
    return fitted.map.needs_covariates or (_too_long(fitted) and find_spec("pyarrow") is None)


def map_query(
    connection: DuckDBPyConnection, fitted: Recalibration, rows: str, column: str,
    files: list[Path], prediction: str,
) -> MapQuery:  # fmt: skip
    """Return the fastest way that the map allows; `column` is the prediction as a number in `rows`."""
    if made_beforehand(fitted):
        return _beforehand(connection, fitted, rows, files, prediction)
    inside = is_probability(Sql(column), "duckdb")
    usable = f"SELECT *, CASE WHEN {inside} THEN {column} END AS {USABLE} FROM ({rows})"
    if _too_long(fitted):
        _register(connection, fitted)
        return MapQuery(usable, f"{FUNCTION}({USABLE})")
    mapped = looked_up(fitted.map, usable, USABLE)
    if mapped.lists:
        listed = ", ".join(f"?::{list_type(numbers)} AS {name}" for name, numbers in mapped.lists.items())
        connection.execute(f"CREATE TEMP TABLE {LISTS} AS SELECT {listed}", list(mapped.lists.values()))
    return MapQuery(mapped.rows, mapped.value)


def _too_long(fitted: Recalibration) -> bool:
    try:
        looked_up(fitted.map, "", USABLE)
    except TooManyPiecesError:
        return True
    return False


def _register(connection: DuckDBPyConnection, fitted: Recalibration) -> None:
    """Let DuckDB call the map for some thousand rows at a time; it leaves NULL out."""
    import pyarrow

    def predict(p: Any) -> Any:
        return pyarrow.array(fitted.map.predict(p.to_numpy()))

    connection.create_function(FUNCTION, predict, ["DOUBLE"], "DOUBLE", type="arrow")  # type: ignore[call-overload]


def _beforehand(
    connection: DuckDBPyConnection, fitted: Recalibration, rows: str, files: list[Path], prediction: str
) -> MapQuery:
    """Predict for all rows in memory, and put the column beside them."""
    numbers, columns = read_table([str(file) for file in files], [prediction], fitted.map.column_names)
    p = numbers[prediction]
    with np.errstate(invalid="ignore"):
        usable = (p >= 0) & (p <= 1)
    q = np.full(len(p), np.nan)
    if usable.any():
        kept = {name: column[usable] for name, column in columns.items()}
        q[usable] = fitted.predict(p[usable], kept)
    connection.register(TABLE, {MADE.strip('"'): q})
    value = f"CASE WHEN isnan({MADE}) THEN NULL ELSE {MADE} END"
    return MapQuery(f"SELECT * FROM ({rows}) AS calibrant_rows POSITIONAL JOIN {TABLE}", value)
