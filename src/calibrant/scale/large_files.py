"""Files larger than memory: DuckDB scans and groups them, spilling to disk if it must."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import UnreadableFileError, reject_name, sentence
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
        table = _numeric(open_table(connection, path), columns, path)
        frame = cell_frame(table, columns, cells)
        try:
            rows = _watched(connection, lambda: collected(frame), progress)
            found = from_rows(rows, columns, cells)
            refuse(rejected(found.table, cells), columns, missing, invalid, table)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", reason)) from None
    return found


def _numeric(table: DuckDBPyRelation, columns: Columns, path: str | Path) -> DuckDBPyRelation:
    """Keep the wanted columns, numbers written as text parsed; what cannot be parsed counts as missing."""
    for name in columns.wanted:
        if name not in table.columns:
            raise reject_name(f"column of {path}", name, table.columns)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    numbers = set(columns.wanted) - set(columns.by)

    def read(name: str) -> str:
        text = kinds[name] == "VARCHAR" and name in numbers
        return f"TRY_CAST({quoted(name)} AS DOUBLE) AS {quoted(name)}" if text else quoted(name)

    return table.project(", ".join(read(name) for name in dict.fromkeys(columns.wanted)))


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
