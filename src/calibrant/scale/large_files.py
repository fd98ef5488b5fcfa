"""Files larger than memory: DuckDB scans and groups them, spilling to disk if it must."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InvalidInputError, UnreadableFileError, reject_name, sentence
from calibrant.forecasts import Missing
from calibrant.scale.aggregate import Aggregated, Columns, cell_frame, collected, from_rows
from calibrant.scale.cells import rejected
from calibrant.scale.files import connect, open_table, quoted
from calibrant.scale.rejects import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

MEMORY = "768MB"  # what DuckDB may hold before it spills to disk
POLL = 0.1  # seconds between looks at the progress


def aggregate_file(
    path: str | Path,
    columns: Columns,
    cells: int,
    missing: Missing,
    invalid: Missing,
    progress: Callable[[float], object] | None = None,
) -> Aggregated:
    """Sum a file or glob into cells, in one pass and bounded memory."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="calibrant-") as spill, connect() as connection:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute(f"SET temp_directory = '{spill}'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        connection.execute("SET progress_bar_time = 0")
        source = open_table(connection, path)
        table = _numeric(source, columns, path)
        frame = cell_frame(table, columns, cells)
        try:
            rows = _watched(connection, lambda: collected(frame), progress)
            found = from_rows(rows, columns, cells)
            if invalid == "error":
                _refuse_text(source, columns, rejected(found.table, cells))
            refuse(rejected(found.table, cells), columns, missing, invalid, table)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", reason)) from None
    return found


def _numeric(table: DuckDBPyRelation, columns: Columns, path: str | Path) -> DuckDBPyRelation:
    """Keep the wanted columns, numbers written as text parsed; what is no number counts as missing."""
    for name in columns.wanted:
        if name not in table.columns:
            raise reject_name(f"column of {path}", name, table.columns)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    numbers = set(columns.wanted) - set(columns.by)

    def read(name: str) -> str:
        text = kinds[name] == "VARCHAR" and name in numbers
        return f"{_parsed(name)} AS {quoted(name)}" if text else quoted(name)

    return table.project(", ".join(read(name) for name in dict.fromkeys(columns.wanted)))


def _parsed(name: str) -> str:
    # trim() keeps DuckDB from handing the cast to its CSV reader, which would fail where TRY_CAST must not
    return f"TRY_CAST(trim({quoted(name)}) AS DOUBLE)"


def _refuse_text(table: DuckDBPyRelation, columns: Columns, rejects: dict[str, int]) -> None:
    """Name a cell that is no number, if rows without a value were found in a column of text."""
    if not any("missing" in reason for reason in rejects):
        return
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    for name in columns.wanted[: len(columns.wanted) - len(columns.by)]:
        if kinds[name] != "VARCHAR":
            continue
        unread = table.filter(f"{quoted(name)} IS NOT NULL AND {_parsed(name)} IS NULL")
        [(count, example)] = unread.aggregate(f"count(*), min({quoted(name)})").fetchall()
        if count:
            found = f"got the text {example!r} ({count:,} row{'s' if count > 1 else ''})"
            hint = "map the labels to 0 and 1, or correct the cells"
            raise InvalidInputError(sentence(f"column {name!r}", "must be numeric", found, hint))


def _watched(
    connection: DuckDBPyConnection, work: Callable[[], Any], progress: Callable[[float], object] | None
) -> Any:
    """Run a query in a thread of its own, reporting how far it is; an interrupt stops it at once."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            share = connection.query_progress() / 100
            if progress is not None and share >= 0:  # negative: DuckDB does not know
                progress(min(1.0, share))
    except BaseException:
        connection.interrupt()
        thread.join()
        raise
    if failed:
        raise failed[0]
    return done[0]
