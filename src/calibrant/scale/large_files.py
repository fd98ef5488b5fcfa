"""Files larger than memory: DuckDB scans and groups them, spilling to disk if it must."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.disk import scratch_folder
from calibrant.errors import InvalidInputError, sentence
from calibrant.numerals import counted
from calibrant.records import Missing
from calibrant.scale.aggregate import Aggregated, Columns, cell_frame, collected, from_rows
from calibrant.scale.bad_rows import UNREAD, BadRow, bad_rows
from calibrant.scale.cells import rejected_rows
from calibrant.scale.files import FileNames, in_pieces_or_whole, open_files
from calibrant.scale.labels import Reader, label_family, label_reader, label_sql
from calibrant.scale.rejects import refuse
from calibrant.scale.session import MEMORY
from calibrant.scale.sources import Source
from calibrant.scale.streamed import streamed_cells
from calibrant.scale.text_numbers import Notation, not_a_number, refuse_repeats, written_as

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

POLL = 0.1  # seconds between looks at the progress


def aggregate_file(
    path: FileNames,
    columns: Columns,
    cells: int,
    missing: Missing,
    invalid: Missing,
    progress: Callable[[float], object] | None = None,
    notation: Notation | None = None,
) -> Aggregated:
    """Sum files into cells, in one pass and bounded memory."""
    refuse_repeats(columns.wanted[: len(columns.wanted) - len(columns.by)])
    used = notation or written_as.get()
    return in_pieces_or_whole(
        lambda parallel: _aggregate(path, columns, cells, missing, invalid, progress, used, parallel)
    )


def _aggregate(
    path: FileNames,
    columns: Columns,
    cells: int,
    missing: Missing,
    invalid: Missing,
    progress: Callable[[float], object] | None,
    notation: Notation,
    parallel: bool,
) -> Aggregated:
    with scratch_folder() as spill:
        settings = {"memory_limit": MEMORY, "temp_directory": str(spill), "preserve_insertion_order": "false"}
        settings |= {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}
        settings |= {"progress_bar_time": "0"}
        with open_files(path, columns.wanted, parallel, **settings) as (connection, parts):
            inside = _inside(columns)
            table = connection.sql(" UNION ALL ".join(_rows(part, columns, notation) for part in parts))
            readers = [_reader(parts, name) for name in columns.by]
            aggregated = streamed_cells(path, table, inside, cells, readers, progress)
            if aggregated is None:
                frame = cell_frame(table, inside, cells)
                rows = run_with_progress(connection, lambda: collected(frame), progress)
                aggregated = from_rows(rows, inside, cells, readers)
            bad = rejected_rows(aggregated.table, cells)
            if invalid == "error" and any("missing" in reason for reason in bad):
                _refuse_text(path, parts, columns, notation)

            def first(name: str, kind: str) -> BadRow | None:
                return next(bad_rows(path, name, kind, notation), None)

            refuse(bad, columns, missing, invalid, table, inside, first)
    return aggregated


def _inside(columns: Columns) -> Columns:
    """Return names for use inside the query: SQL takes `p` and `P` for the same column, files do not."""
    by = tuple(f"by_{place}" for place in range(len(columns.by)))
    return Columns("outcome", "prediction", "weight" if columns.weight else None, by)


def _rows(part: Source, columns: Columns, notation: Notation) -> str:
    """Return the SQL of the wanted columns: numbers as numbers, labels in the one grammar of labels."""
    count = len(columns.wanted) - len(columns.by)
    cells = [part.columns[name].number(notation) for name in columns.wanted[:count]]
    cells += [label_sql(part.columns[name]) for name in columns.by]
    pairs = zip(cells, _inside(columns).wanted, strict=True)
    return f"SELECT {', '.join(f'{cell} AS {name}' for cell, name in pairs)} FROM {part.scan}"


def _reader(parts: Sequence[Source], name: str) -> Reader:
    """Return how the labels of a column are read; files that give it types of another family are refused."""
    kinds = [part.columns[name].kind for part in parts]
    families = {label_family(kind) for kind in kinds}
    if len(families) > 1:
        rule, got = "must have one type in all files", f"got {' and '.join(sorted(set(kinds)))}"
        raise InvalidInputError(sentence(f"column {name!r}", rule, got))
    return label_reader(kinds[0])


def _refuse_text(path: FileNames, parts: Sequence[Source], columns: Columns, notation: Notation) -> None:
    """Name a cell that is no number, now that rows without a value were found."""
    for name in columns.wanted[: len(columns.wanted) - len(columns.by)]:
        if any(part.columns[name].text is not None for part in parts):
            bad = list(bad_rows(path, name, UNREAD, notation))
            if bad:
                rows = counted(sum(one.count for one in bad), "row")
                raise not_a_number(name, bad[0].text, f" in {bad[0].place} ({rows})")


def run_with_progress(
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
