"""Rows of large files streamed out of DuckDB into a table of cells, where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.scale.aggregate import Aggregated, Columns, numbered
from calibrant.scale.cells import CellTable, codes_in_a_group
from calibrant.scale.dense_cells import TooManyGroupsError, serves
from calibrant.scale.files import FileNames
from calibrant.scale.labels import Reader
from calibrant.scale.memory import rows_at_most
from calibrant.scale.row_stream import BATCH, sum_stream
from calibrant.scale.session import identifier


def streamed_cells(
    path: FileNames,
    relation: Any,
    columns: Columns,
    cells: int,
    readers: list[Reader],
    progress: Callable[[float], object] | None,
) -> Aggregated | None:
    """Sum the rows of a DuckDB relation; None where a group-by of DuckDB's serves better, or has to explain.

    The cells of one group fit into a cache, so DuckDB is as fast there. Weighted rows have more sums than
    the table holds. Whatever cannot be read is left to the group-by, which says so in words.
    """
    if columns.weight is not None or not columns.by:
        return None
    total = rows_at_most(path)
    if not serves(total, cells):
        return None
    import pyarrow as pa

    def told(rows: int) -> None:
        if progress is not None:
            progress(min(1.0, rows / total))

    numbers = [
        f"COALESCE({identifier(name)}, 'NaN'::DOUBLE)" for name in (columns.prediction, columns.outcome)
    ]
    wanted = relation.project(", ".join([*numbers, *map(identifier, columns.by)]))
    try:
        table, seen = sum_stream(_batches(wanted), cells, told)
    except (TooManyGroupsError, pa.ArrowException, OSError):
        return None
    told(total)
    return _labelled(table, seen, cells, readers)


def _batches(relation: Any) -> Any:
    """Stream a relation as Arrow batches; the method was renamed in DuckDB 1.4."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    return read(BATCH)


def _labelled(table: CellTable, seen: list[Any], cells: int, readers: list[Reader]) -> Aggregated:
    """Read the labels of the groups, and number the cells by the order of the labels."""
    raw = [[values[k] for values in seen] for k in range(len(readers))]
    labels, numbers = numbered(raw, len(seen), readers)
    group, code = np.divmod(table.keys, codes_in_a_group(cells))
    return Aggregated(labels, table.renamed(numbers[group] * codes_in_a_group(cells) + code))
