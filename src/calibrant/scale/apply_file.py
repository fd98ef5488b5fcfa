"""Apply a recalibration to a file of any size: DuckDB streams it, every column and row kept as it was."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.recalibration.result import Recalibration
from calibrant.scale.large_files import _watched as watched

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "512MB"  # what DuckDB may hold before it spills to disk
TEXT = {".csv": ",", ".tsv": "\t", ".txt": ","}
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class Applied:
    """How many rows were written, and how many of them had no usable prediction or one outside the range."""

    rows: int
    unusable: int
    outside: int


def apply_file(
    fitted: Recalibration,
    source: str | Path,
    target: str | Path,
    *,
    prediction: str,
    into: str,
    progress: Callable[[float], object] | None = None,
) -> Applied:
    """Write all columns of `source` and the recalibrated prediction to `target`, whole or not at all.

    Text files are copied as text: nothing is re-typed. Rows without a prediction in [0, 1] get no value.
    """
    import duckdb

    if fitted.map.needs_covariates:
        hint = "use Recalibration.apply on a frame"
        raise InvalidInputError(sentence(f"method {fitted.chosen!r}", "needs covariates", "", hint))
    reader, writer = _reader(Path(source)), _writer(Path(target))
    part = _part_of(Path(target))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="calibrant-") as spill,
            duckdb.connect(":memory:") as connection,
        ):
            _settle(connection, spill)
            columns = _columns(connection, reader, prediction, into, source)
            value = _value(fitted, prediction, columns)
            query = f"COPY (SELECT *, {value} AS {_name(into)} FROM {reader}) TO '{_quoted(part)}' ({writer})"
            watched(connection, lambda: connection.execute(query), progress)
            counted = _counted(connection, reader, prediction, fitted)
        part.chmod(0o644)
        part.replace(target)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(sentence(f"file {str(source)!r}", "must be readable", reason)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFileError(sentence(f"file {str(target)!r}", "must be writable", reason)) from None
    finally:
        part.unlink(missing_ok=True)
    return counted


def _part_of(target: Path) -> Path:
    if not target.parent.is_dir():
        raise UnreadableFileError(sentence(f"folder {str(target.parent)!r}", "must exist"))
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFileError(sentence(f"file {str(target)!r}", "must be writable", reason)) from None
    os.close(handle)
    return Path(name)


def _settle(connection: DuckDBPyConnection, spill: str) -> None:
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    connection.execute(f"SET temp_directory = '{spill}'")
    connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    connection.execute("SET progress_bar_time = 0")


def _reader(path: Path) -> str:
    """Return the table function that reads a file: text as text, Parquet as it is typed."""
    ending = path.suffix.lower()
    if ending not in (*TEXT, *PARQUET):
        known = ", ".join((*TEXT, *PARQUET))
        found = f"got {path.suffix or 'no ending'!r}"
        raise UnreadableFileError(sentence(f"file {str(path)!r}", f"must end in one of {known}", found))
    if not path.is_file():
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must exist", "got no such file"))
    if ending in PARQUET:
        return f"read_parquet('{_quoted(path)}', hive_partitioning = false)"
    options = "all_varchar = true, header = true, hive_partitioning = false, allow_quoted_nulls = false"
    return f"read_csv('{_quoted(path)}', {options})"


def _writer(path: Path) -> str:
    ending = path.suffix.lower()
    if ending in PARQUET:
        return "FORMAT parquet"
    if ending in TEXT:
        return f"FORMAT csv, HEADER, DELIMITER '{TEXT[ending]}'"
    known = ", ".join((*TEXT, *PARQUET))
    raise UnreadableFileError(sentence(f"file {str(path)!r}", f"must end in one of {known}"))


def _columns(
    connection: DuckDBPyConnection, reader: str, prediction: str, into: str, source: str | Path
) -> dict[str, str]:
    """Return the columns and their types; refuse a missing prediction and a name that is taken."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    columns = {str(row[0]): str(row[1]) for row in described}
    if prediction not in columns:
        raise reject_name(f"column of {source}", prediction, list(columns))
    if into.lower() in (name.lower() for name in columns):
        hint = "name another with --as"
        raise InvalidInputError(sentence(f"column {into!r}", "must not be in the file already", hint=hint))
    return columns


def _value(fitted: Recalibration, prediction: str, columns: dict[str, str]) -> str:
    """Return the recalibrated prediction as SQL; numbers written as text are parsed first."""
    expression = fitted.to_sql(prediction)
    if columns[prediction] == "VARCHAR":
        typed = f"CAST({_name(prediction)} AS DOUBLE)"
        expression = expression.replace(typed, f"TRY_CAST(trim({_name(prediction)}) AS DOUBLE)")
    return expression


def _counted(connection: DuckDBPyConnection, reader: str, prediction: str, fitted: Recalibration) -> Applied:
    number = f"TRY_CAST(trim(CAST({_name(prediction)} AS VARCHAR)) AS DOUBLE)"
    kind = dict(
        connection.execute(
            f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {reader})"
        ).fetchall()
    )
    if kind[prediction] != "VARCHAR":
        number = f"CAST({_name(prediction)} AS DOUBLE)"
    usable = "p >= 0 AND p <= 1"
    outside = f"(p < {fitted.fit.low!r}::DOUBLE OR p > {fitted.fit.high!r}::DOUBLE)"
    counts = f"count(*), count(*) FILTER ({usable}), count(*) FILTER ({usable} AND {outside})"
    row = connection.execute(f"SELECT {counts} FROM (SELECT {number} AS p FROM {reader})").fetchall()[0]
    return Applied(int(row[0]), int(row[0] - row[1]), int(row[2]))


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
