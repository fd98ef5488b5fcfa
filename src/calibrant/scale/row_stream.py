"""Arrow batches of rows, summed by a second thread while the next ones are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.results import Array
from calibrant.scale.cells import CellTable
from calibrant.scale.dense_cells import DenseCells
from calibrant.scale.group_numbers import GroupNumbers

AT_ONCE = 2_000_000  # rows that are sorted together


BATCH = 1_000_000  # rows that DuckDB hands over, at most


def sum_stream(
    batches: Iterator[Any], cells: int, progress: Callable[[int], object] | None
) -> tuple[CellTable, list[tuple[Any, ...]]]:
    """Sum Arrow batches of prediction, outcome and groups; return the cells and the groups' values.

    A second thread adds rows while the next ones are read. `progress` is called with the rows read.
    """
    dense, groups = DenseCells(cells), GroupNumbers()
    waiting: list[tuple[Array, Array, npt.NDArray[np.int32]]] = []
    held = read = 0
    at_work: Future[None] | None = None
    with ThreadPoolExecutor(1) as pool:
        for batch in batches:
            v, y = (batch.column(k).to_numpy(zero_copy_only=False) for k in range(2))
            others = [batch.column(k) for k in range(2, batch.num_columns)]
            waiting.append((v, y, groups.of(others, len(v))))
            held, read = held + len(v), read + len(v)
            if held >= AT_ONCE:
                at_work = _handed_over(pool, at_work, dense, len(groups.seen), waiting)
                waiting, held = [], 0
            if progress is not None:
                progress(read)
        at_work = _handed_over(pool, at_work, dense, len(groups.seen), waiting)
        at_work.result()
    return dense.occupied(), groups.seen


def _handed_over(
    pool: ThreadPoolExecutor,
    before: Future[None] | None,
    dense: DenseCells,
    groups: int,
    waiting: list[tuple[Array, Array, npt.NDArray[np.int32]]],
) -> Future[None]:
    """Let the second thread add the rows that wait, once it has added those before."""
    if before is not None:
        before.result()
    dense.make_room(groups)

    def work() -> None:
        if waiting:
            dense.add(*(np.concatenate(column) for column in zip(*waiting, strict=True)))

    return pool.submit(work)
