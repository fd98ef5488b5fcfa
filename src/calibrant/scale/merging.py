"""Adding sketches up: their cells, and the parts that the sum remembers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from calibrant.scale.aggregate import Aggregated
from calibrant.scale.cells import CellTable, codes_in_a_group, merged_tables
from calibrant.scale.labels import ordered_labels, refuse_lookalikes

KEPT = 10_000  # the latest parts; as many days are 27 years


def merged_cells(found: Sequence[Aggregated], cells: int) -> Aggregated:
    """Return the sums of all tables in each cell of each group."""
    known = [label for part in found for label in part.labels]
    refuse_lookalikes(known)
    labels = ordered_labels(set(known))
    numbers = {label: number for number, label in enumerate(labels)}
    size = codes_in_a_group(cells)
    tables = []
    for part in found:
        moved = np.array([numbers[label] for label in part.labels] or [0], dtype=np.int64)
        old, code = np.divmod(part.table.keys, size)
        t = part.table
        tables.append(CellTable(moved[old] * size + code, t.counts, t.sums, t.low, t.high))
    return Aggregated(labels, merged_tables(tables))


def merged_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """Return each part once, where it came last, and no more than are kept."""
    latest_first = dict.fromkeys(reversed(list(parts)))
    return tuple(reversed(list(latest_first)[:KEPT]))
