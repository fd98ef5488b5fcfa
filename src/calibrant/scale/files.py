"""Files of predictions and outcomes (CSV, TSV, Parquet, JSON lines, globs), read through DuckDB."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.forecasts import Forecasts, Missing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
TEXT_FOR_MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]


def read_forecasts(
    path: str | Path, *, outcome: str, prediction: str, weight: str | None = None, missing: Missing = "error"
) -> Forecasts:
    """Read two or three columns of a file into Forecasts; errors name the columns."""
    names = [outcome, prediction] + ([weight] if weight else [])
    return Forecasts.from_frame(
        read_columns(path, names), outcome=outcome, prediction=prediction, weight=weight, missing=missing
    )


def read_columns(path: str | Path, names: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Return numeric columns of a file as numpy arrays, in the order of its rows; missing values as NaN."""
    return _read(path, names, _numeric_column)


def read_categories(path: str | Path, names: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Return columns of any type as numpy arrays, in the order of the rows of the file.

    Missing is NaN in a column of numbers, NaT in one of dates, and None in any other.
    """
    return _read(path, names, _category_column)


def _read(
    path: str | Path, names: list[str], column: Callable[[DuckDBPyRelation, str, str], npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    with connect() as connection:
        table = open_table(connection, path)
        for name in names:
            if name not in table.columns:
                _reject_ragged(Path(path), name)
                raise reject_name(f"column of {path}", name, table.columns)
        kinds = dict(zip(table.columns, map(str, table.types), strict=True))
        return {name: column(table, name, kinds[name]) for name in dict.fromkeys(names)}


def _reject_ragged(path: Path, name: str) -> None:
    """Say why a column that the header names was not found: some row has more or fewer cells."""
    if path.suffix.lower() not in (".csv", ".tsv", ".txt") or _is_glob(path):
        return
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as lines, suppress(csv.Error):
        separator = max(",;\t|", key=lines.readline().count)
        lines.seek(0)
        rows = csv.reader(lines, delimiter=separator)
        header = next(rows)
        for row, cells in enumerate(rows if name in header else []):
            if cells and len(cells) != len(header):
                found = f"got {len(cells)} cells in row {row} and {len(header)} in the header"
                rule = "must have the same number of cells in every row"
                raise UnreadableFileError(sentence(f"file {str(path)!r}", rule, found))


def _category_column(table: DuckDBPyRelation, name: str, kind: str) -> npt.NDArray[Any]:
    import duckdb

    shown = f"CAST({quoted(name)} AS VARCHAR)" if kind.startswith(("ENUM", "UUID")) else quoted(name)
    shown = f"CAST({quoted(name)} AS DOUBLE)" if kind.startswith(("DECIMAL", "HUGEINT")) else shown
    try:
        column = table.project(f"{shown} AS x").fetchnumpy()["x"]
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(sentence(f"column {name!r}", "must be readable", reason)) from None
    absent = np.ma.getmaskarray(column)
    values = np.asarray(np.ma.getdata(column))
    if not absent.any():
        return values
    if values.dtype.kind in "iuf":
        return np.where(absent, np.nan, values.astype(np.float64))
    if values.dtype.kind == "M":
        return np.where(absent, np.datetime64("NaT"), values)
    out = values.astype(object)
    out[absent] = None
    return out


def connect() -> DuckDBPyConnection:
    """Open an in-memory DuckDB."""
    import duckdb

    return duckdb.connect(":memory:")


def open_table(connection: DuckDBPyConnection, path: str | Path) -> DuckDBPyRelation:
    """Open a file or glob as a DuckDB relation; nothing is read beyond the header."""
    import duckdb

    found = (
        sorted(Path().glob(str(path))) if _is_glob(path) and not Path(path).is_absolute() else [Path(path)]
    )
    kind = _kind(Path(path))
    if not _is_glob(path):
        _check_file(Path(path))
    elif not found:
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must match a file", "got none"))
    options: dict[str, Any] = {"na_values": TEXT_FOR_MISSING} if READERS[kind] == "read_csv" else {}
    try:
        table: DuckDBPyRelation = getattr(connection, READERS[kind])(str(path), **options)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(
            sentence(f"file {str(path)!r}", f"must be readable as {kind[1:]}", reason)
        ) from None
    return table


def _is_glob(path: str | Path) -> bool:
    return any(mark in str(path) for mark in "*?[")


def _kind(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in (".gz", ".zst")]
    if not suffixes or suffixes[-1] not in READERS:
        rule = f"must end in one of {', '.join(READERS)}"
        raise UnreadableFileError(
            sentence(f"file {str(path)!r}", rule, f"got {path.suffix or 'no ending'!r}")
        )
    return suffixes[-1]


def _check_file(path: Path) -> None:
    if not path.exists():
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must exist", "got no such file"))
    if path.is_dir():
        hint = f"name its files with a glob, {path / '*.parquet'}"
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be a file", "got a folder", hint))
    if path.stat().st_size == 0:
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must not be empty", "got 0 bytes"))


def quoted(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _numeric_column(table: DuckDBPyRelation, name: str, kind: str) -> npt.NDArray[Any]:
    import duckdb

    try:
        if kind == "VARCHAR":
            return _parsed_text(table, name)
        column = table.project(f"{quoted(name)} AS x").fetchnumpy()["x"]
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(sentence(f"column {name!r}", "must be readable", reason)) from None
    if isinstance(column, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(column), np.nan, column.data.astype(np.float64))
    return np.asarray(column)


def _parsed_text(table: DuckDBPyRelation, name: str) -> npt.NDArray[np.float64]:
    """Parse a column in which some cell is not a number: name the first such cell, or use them all."""
    cells = table.project(f"{quoted(name)} AS text, TRY_CAST({quoted(name)} AS DOUBLE) AS x").fetchnumpy()
    text, number = cells["text"], cells["x"]
    unread = np.ma.getmaskarray(number) & ~np.ma.getmaskarray(text)
    if unread.any():
        row, count = int(unread.argmax()), int(unread.sum())
        found = f"got the text {text[row]!r} in row {row} ({count:,} row{'s' if count > 1 else ''})"
        hint = "map the labels to 0 and 1, or correct the cells"
        raise InvalidInputError(sentence(f"column {name!r}", "must be numeric", found, hint))
    return np.where(np.ma.getmaskarray(number), np.nan, np.ma.getdata(number))
