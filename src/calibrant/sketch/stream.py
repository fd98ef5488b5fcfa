"""Files larger than memory: DuckDB scans and groups them, or streams their rows into a table of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, Place
from calibrant.files import scratch_folder
from calibrant.io.read import (
    UNREAD,
    FileNames,
    bad_rows,
    hint_of_labels,
    in_pieces_or_whole,
    open_files,
    rows_at_most,
)
from calibrant.io.session import MAX_MEMORY, PROGRESS_SETTINGS, arrow_batches, identifier, run_with_progress
from calibrant.io.sources import Notation, Source, default_notation, not_a_number, refuse_repeats
from calibrant.records import Missing
from calibrant.results import Array
from calibrant.sketch import aggregate
from calibrant.sketch import cells as grid
from calibrant.sketch.aggregate import Columns
from calibrant.sketch.cells import CellTable, Contents
from calibrant.sketch.labels import Reader, label_sql, labels_of


class GroupNumbers:
    """Numbers groups in the order they are seen, batch by batch; `seen` has their values."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._numbers: dict[Any, int] = {}

    def of(self, columns: list[Any], rows: int) -> npt.NDArray[np.int32]:
        """Return the number of the group of every row, from one Arrow array per column of groups."""
        import pyarrow as pa

        packed = np.zeros(rows, dtype=np.int64)
        for column in columns:
            encoded = column.dictionary_encode(null_encoding="encode")
            places = encoded.indices.to_numpy(zero_copy_only=False)
            # renumbered each time: the product of many columns' sizes would exceed 64 bits
            pairs = pa.array(packed * len(encoded.dictionary) + places).dictionary_encode()
            packed = pairs.indices.to_numpy().astype(np.int64)
        first = np.zeros(int(packed.max(initial=-1)) + 1, dtype=np.int64)
        first[packed[::-1]] = np.arange(rows)[::-1]  # the last to be written is the first row
        numbers = []
        for values in zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True):
            # True is not 1, and NaN is itself
            key = tuple((type(value), value if value == value else "NaN") for value in values)
            numbers.append(self._numbers.setdefault(key, len(self.seen)))
            if numbers[-1] == len(self.seen):
                self.seen.append(values)
        return np.asarray(numbers, dtype=np.int32)[packed]


ROWS_ADDED_AT_ONCE = 2_000_000  # rows that are sorted together
MAX_BATCH_ROWS = 1_000_000  # rows that DuckDB hands over, at most


def sum_stream(
    batches: Iterator[Any], cells: int, progress: Callable[[int], object]
) -> tuple[CellTable, list[tuple[Any, ...]]]:
    """Sum Arrow batches of prediction, outcome and groups; a second thread adds while the next are read."""
    dense, groups = grid.DenseCells(cells), GroupNumbers()
    waiting: list[tuple[Array, Array, npt.NDArray[np.int32]]] = []
    waiting_rows = read = 0

    def add(rows: list[tuple[Array, Array, npt.NDArray[np.int32]]]) -> None:
        if rows:
            dense.add(*(np.concatenate(column) for column in zip(*rows, strict=True)))

    with ThreadPoolExecutor(1) as pool:
        at_work: Future[None] = pool.submit(add, [])
        for batch in batches:
            v, y = (batch.column(k).to_numpy(zero_copy_only=False) for k in range(2))
            others = [batch.column(k) for k in range(2, batch.num_columns)]
            waiting.append((v, y, groups.of(others, len(v))))
            waiting_rows, read = waiting_rows + len(v), read + len(v)
            if waiting_rows >= ROWS_ADDED_AT_ONCE:
                at_work.result()
                dense.make_room(len(groups.seen))
                at_work = pool.submit(add, waiting)
                waiting, waiting_rows = [], 0
            progress(read)
        at_work.result()
        dense.make_room(len(groups.seen))
        add(waiting)
    return dense.occupied(), groups.seen


def streamed_cells(
    path: FileNames,
    relation: Any,
    columns: Columns,
    cells: int,
    readers: list[Reader],
    progress: Callable[[float], object] | None,
) -> Contents | None:
    """Sum the rows of a relation; None where DuckDB's group-by is as fast (one group), or has to explain."""
    if columns.weight is not None or not columns.by:
        return None
    total = rows_at_most(path)
    fits = grid.codes_in_a_group(cells) <= grid.MAX_DENSE_CELLS
    if total < grid.MIN_STREAMED_ROWS or not fits or find_spec("pyarrow") is None:
        return None
    import pyarrow as pa

    def report(rows: int) -> None:
        if progress is not None:
            progress(min(1.0, rows / total))

    selected = [
        f"COALESCE({identifier(name)}, 'NaN'::DOUBLE)" for name in (columns.prediction, columns.outcome)
    ]
    wanted = relation.project(", ".join([*selected, *map(identifier, columns.by)]))
    try:
        table, seen = sum_stream(arrow_batches(wanted, MAX_BATCH_ROWS), cells, report)
    except (grid.TooManyGroupsError, pa.ArrowException, OSError):
        return None
    report(total)
    raw = [[values[k] for values in seen] for k in range(len(readers))]
    labels, numbers = aggregate.numbered(raw, len(seen), readers)
    group, code = np.divmod(table.keys, grid.codes_in_a_group(cells))
    table = table.renamed(numbers[group] * grid.codes_in_a_group(cells) + code)
    return Contents(cells, columns.by, labels, table)


COUNT_ERROR = 0.1  # relative error of a count of distinct values


def aggregate_file(
    path: FileNames,
    columns: Columns,
    cells: int,
    missing: Missing,
    invalid: Missing,
    progress: Callable[[float], object] | None,
    max_groups: int,
) -> Contents:
    refuse_repeats(columns.numbers)
    used, inside = default_notation.get(), _inside(columns)

    def attempt(parallel: bool) -> Contents:
        with scratch_folder() as spill, open_files(
            path, columns.wanted, parallel, preserve_insertion_order="false", memory_limit=MAX_MEMORY,
            temp_directory=str(spill), **PROGRESS_SETTINGS,
        ) as (connection, parts):  # fmt: skip
            table = connection.sql(" UNION ALL ".join(_rows(part, columns, used) for part in parts))
            readers = [_reader(parts, name) for name in columns.by]
            if columns.by and rows_at_most(path) > max_groups:
                _refuse_many_groups(table, inside, columns, max_groups)
            contents = streamed_cells(path, table, inside, cells, readers, progress)
            if contents is None:
                frame = aggregate.cell_frame(table, inside, cells)
                rows = run_with_progress(connection, lambda: aggregate.collected(frame), progress)
                contents = aggregate.from_rows(rows, inside, cells, readers)
            aggregate.refuse_many_groups(len(contents.labels), columns.by, max_groups)
            bad = grid.rejected_rows(contents.table, cells)
            if invalid == "error" and any("missing" in reason for reason in bad):
                _refuse_text(path, parts, columns, used)

            def first(name: str, kind: str) -> tuple[str, Place] | None:
                return next(bad_rows(path, name, kind, used), None)

            aggregate.refuse(bad, columns, missing, invalid, table, inside, first)
            return replace(contents, by=columns.by)

    return in_pieces_or_whole(attempt)


def _refuse_many_groups(table: Any, inside: Columns, columns: Columns, max_groups: int) -> None:
    """Count groups approximately before they are collected, and name the column that has most of them."""
    names = [identifier(name) for name in inside.by]
    counts = ", ".join(f"approx_count_distinct({name})" for name in names)
    [found] = table.aggregate(f"{counts}, approx_count_distinct(({', '.join(names)}))").fetchall()
    *each, together = (int(count * (1 - COUNT_ERROR)) for count in found)
    most, name = max(zip(each, columns.by, strict=True), key=lambda pair: pair[0])
    aggregate.refuse_many_groups(most, [name], max_groups)
    aggregate.refuse_many_groups(together, columns.by, max_groups)


def _inside(columns: Columns) -> Columns:
    """Return names for use inside the query: SQL takes `p` and `P` for the same column, files do not."""
    by = tuple(f"by_{place}" for place in range(len(columns.by)))
    return Columns("outcome", "prediction", "weight" if columns.weight else None, by)


def _rows(part: Source, columns: Columns, notation: Notation) -> str:
    """Return the SQL of the wanted columns: numbers as numbers, labels in the one grammar of labels."""
    cells = [part.columns[name].number(notation) for name in columns.numbers]
    cells += [label_sql(part.columns[name]) for name in columns.by]
    pairs = zip(cells, _inside(columns).wanted, strict=True)
    return f"SELECT {', '.join(f'{cell} AS {name}' for cell, name in pairs)} FROM {part.scan}"


def _reader(parts: Sequence[Source], name: str) -> Reader:
    kinds = [part.columns[name].kind for part in parts]
    if len({labels_of(kind)[0] for kind in kinds}) > 1:
        rule, got = "must have one type in all files", f"got {' and '.join(sorted(set(kinds)))}"
        raise InvalidInputError(f"column {name!r}", rule, got)
    return labels_of(kinds[0])[1]


def _refuse_text(path: FileNames, parts: Sequence[Source], columns: Columns, notation: Notation) -> None:
    for name in columns.numbers:
        if any(part.columns[name].text is not None for part in parts):
            bad = list(bad_rows(path, name, UNREAD, notation))
            if bad:
                text, place = bad[0]
                hint = hint_of_labels(path, name) if name == columns.numbers[0] else ""
                raise not_a_number(name, text, place._replace(rows=sum(one.rows for _, one in bad)), hint)
