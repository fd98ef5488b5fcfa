"""Columns of files (CSV, TSV, Parquet, JSON lines, globs) as arrays, read through DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.scale.categories import category_column, refuse_nested
from calibrant.scale.located import located
from calibrant.scale.session import connect, plain_names
from calibrant.scale.sources import NotInPiecesError, Source, sources, unreadable
from calibrant.scale.text_numbers import Notation, not_a_number, refuse_repeats, unread_sql, written_as

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FileNames = str | Path | Sequence[str | Path]
Read = TypeVar("Read")


def read_columns(
    path: FileNames, names: list[str], notation: Notation | None = None
) -> dict[str, npt.NDArray[np.float64]]:
    """Return numeric columns of files as float64 arrays, in the order of the rows; missing values as NaN."""
    used = notation or written_as.get()
    return in_pieces_or_whole(lambda parallel: _read_columns(path, names, used, parallel))


def _read_columns(
    path: FileNames, names: list[str], notation: Notation, parallel: bool
) -> dict[str, npt.NDArray[np.float64]]:
    refuse_repeats(names)
    with open_files(path, names, parallel) as (connection, parts):
        return _number_columns(connection, parts, names, notation)


def _number_columns(
    connection: DuckDBPyConnection, parts: list[Source], names: list[str], notation: Notation
) -> dict[str, npt.NDArray[np.float64]]:
    read: list[list[npt.NDArray[np.float64]]] = []
    for part in parts:
        before = sum(len(columns[0]) for columns in read)
        read.append(_numbers(connection, part, names, notation, before))
    return {name: np.concatenate([columns[k] for columns in read]) for k, name in enumerate(names)}


def read_table(
    path: FileNames, numbers: list[str], categories: list[str], notation: Notation | None = None
) -> tuple[dict[str, npt.NDArray[np.float64]], dict[str, npt.NDArray[Any]]]:
    """Return what `read_columns` and `read_categories` return, opening the files once."""
    used, others = notation or written_as.get(), list(dict.fromkeys(categories))
    refuse_repeats(numbers)

    def read(parallel: bool) -> tuple[dict[str, npt.NDArray[np.float64]], dict[str, npt.NDArray[Any]]]:
        wanted = list(dict.fromkeys(numbers + others))
        with open_files(path, wanted, parallel) as (connection, parts):
            first = _number_columns(connection, parts, numbers, used)
            return first, {name: category_column(connection, parts, name, used) for name in others}

    return in_pieces_or_whole(read)


def read_categories(
    path: FileNames, names: list[str], notation: Notation | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return columns of any type as numpy arrays, in the order of the rows of the file.

    Missing is NaN in a column of numbers, NaT in one of dates, and None in any other. A column of text
    cells is one of numbers, dates or truth values if every cell is; "007" is a name, not the number 7.
    """
    used = notation or written_as.get()
    return in_pieces_or_whole(lambda parallel: _read_categories(path, names, used, parallel))


def _read_categories(
    path: FileNames, names: list[str], notation: Notation, parallel: bool
) -> dict[str, npt.NDArray[Any]]:
    with open_files(path, names, parallel) as (connection, parts):
        return {name: category_column(connection, parts, name, notation) for name in dict.fromkeys(names)}


def read_cells(path: FileNames, names: list[str]) -> dict[str, list[str | None]]:
    """Return columns as text, in the order of the rows: cells of text files as they stand, None for none."""

    def read(parallel: bool) -> dict[str, list[str | None]]:
        with open_files(path, names, parallel) as (connection, parts):
            return {name: _cells(connection, parts, name) for name in dict.fromkeys(names)}

    return in_pieces_or_whole(read)


def _cells(connection: DuckDBPyConnection, parts: list[Source], name: str) -> list[str | None]:
    cells: list[str | None] = []
    for part in parts:
        column = part.columns[name]
        refuse_nested(column)
        text = column.text or f"CAST({column.sql} AS VARCHAR)"
        cells += [cell for (cell,) in connection.execute(f"SELECT {text} FROM {part.scan}").fetchall()]
    return cells


def in_pieces_or_whole(read: Callable[[bool], Read]) -> Read:
    """Read in parallel, and once more by one thread if the file cannot be read in pieces."""
    try:
        return read(True)
    except NotInPiecesError:
        return read(False)


@contextmanager
def open_files(
    path: FileNames, wanted: list[str], parallel: bool = True, **settings: str
) -> Iterator[tuple[DuckDBPyConnection, list[Source]]]:
    """Open files for the wanted columns; whatever DuckDB says of them is said in the house's words."""
    import duckdb

    files = located(path)
    with plain_names(files) as names, connect(names, **settings) as connection:
        try:
            yield connection, sources(connection, files, names, wanted, parallel)
        except duckdb.Error as error:
            raise unreadable(files, error) from None


def _numbers(
    connection: DuckDBPyConnection, part: Source, names: list[str], notation: Notation, before: int
) -> list[npt.NDArray[np.float64]]:
    """Read columns in one pass; `before` is how many rows came before this part."""
    numbers = [part.columns[name].number(notation) for name in names]
    shown = ", ".join(f"{number} AS x{place}" for place, number in enumerate(numbers))
    cells = connection.execute(f"SELECT {shown} FROM {part.scan}").fetchnumpy()
    read = []
    for place, (name, number) in enumerate(zip(names, numbers, strict=True)):
        column = cells[f"x{place}"]
        absent = np.ma.getmaskarray(column)
        text = part.columns[name].text
        if text is not None and absent.any():
            cell = f"{text} AS t, {unread_sql(text, number)} AS unread"
            _refuse_text(connection, part, name, cell, before)
        read.append(np.where(absent, np.nan, np.ma.getdata(column)))
    return read


def _refuse_text(connection: DuckDBPyConnection, part: Source, name: str, cells: str, before: int) -> None:
    """Name the first cell that holds neither a number nor one of the texts for missing values."""
    numbered = f"SELECT {cells}, row_number() OVER () - 1 AS place FROM {part.scan}"
    query = f"SELECT count(*), min(place), arg_min(t, place) FROM ({numbered}) WHERE unread"
    [(count, place, text)] = connection.execute(query).fetchall()
    if count:
        where = f" in row {before + place} ({count:,} row{'s' if count > 1 else ''})"
        raise not_a_number(name, text, where)
