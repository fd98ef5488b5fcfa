"""Sketch: the joint distribution of prediction and outcome at a known resolution, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.forecasts import Cells, Forecasts
from calibrant.formatting import pluralize
from calibrant.groups.audit_sketch import Strata
from calibrant.inputs import check_missing
from calibrant.metrics.lookup import measure
from calibrant.records import Missing, check_records, warn_if_swapped
from calibrant.results import Measurement
from calibrant.sketch import cells as grid
from calibrant.sketch import storage
from calibrant.sketch.aggregate import MAX_GROUPS, Columns, aggregate, as_frame, refuse, refuse_many_groups
from calibrant.sketch.cells import CELLS, CellTable, Contents
from calibrant.sketch.labels import ordered_labels, refuse_lookalikes
from calibrant.sketch.stream import aggregate_file


def as_names(by: str | list[str] | None) -> tuple[str, ...]:
    names = () if by is None else (by,) if isinstance(by, str) else by
    listed = isinstance(names, list | tuple) and all(isinstance(name, str) and name for name in names)
    if not listed or len(set(names)) < len(names):
        raise InvalidInputError("by", "must name different columns", f"got {by!r}")
    return tuple(names)


MAX_PARTS_KEPT = 10_000  # the latest parts; as many days are 27 years
PART_ID_LENGTH = 16  # characters of a content id that tell parts apart


class Sketch:
    """Sums of the records in each of `cells` equal cells of [0, 1], with 0 and 1 as cells of their own.

    Also called a histogram with moments, or a mergeable summary. Sketches of shards, days and groups add
    up to the sketch of all of them. `measure` gives a value and an interval that provably holds the value
    on the raw rows: of no width where each cell holds one distinct prediction. With `by`, `groups` has a
    sketch of each group, and the sketch itself is their sum.

    >>> sketch = Sketch.from_arrays([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8])
    >>> (sketch + sketch).measure("kuiper").value == sketch.measure("kuiper").value
    True
    """

    def __init__(self, cells: int = CELLS, *, by: str | list[str] | None = None) -> None:
        """Make an empty sketch, to be filled by `update` or by adding others."""
        names = as_names(by)
        self.contents = Contents(grid.check_cells(cells), names, () if names else ((),), grid.empty_table())

    @classmethod
    def _of(cls, contents: Contents) -> Sketch:
        self = cls.__new__(cls)
        self.contents = contents
        return self

    @classmethod
    def from_table(cls, cells: int, by: tuple[str, ...], aggregated: Any) -> Sketch:
        """Build from cells that are already summed: `aggregated` has the labels of groups and the table."""
        return cls._of(
            Contents(grid.check_cells(cells), as_names(list(by)), aggregated.labels, aggregated.table)
        )

    @property
    def found(self) -> Contents:
        """The labels of the groups and the table of cells, as stored."""
        return self.contents

    @classmethod
    def from_arrays(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        missing: Missing = "error",
        cells: int = CELLS,
    ) -> Sketch:
        """Sketch arrays in memory; bad rows are named as Forecasts names them."""
        self = cls(cells)
        self.update(y_true, y_prob, sample_weight, missing=missing)
        return self

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        outcome: str,
        prediction: str,
        weight: str | None = None,
        by: str | list[str] | None = None,
        cells: int = CELLS,
        missing: Missing = "error",
        invalid: Missing = "error",
        max_groups: int = MAX_GROUPS,
    ) -> Sketch:
        """Sketch a frame of any engine: pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis.

        A mapping of names to arrays and an xarray Dataset (one row per point of its variables) will do too.
        The engine scans and groups; only the cells come back. Rows with a missing value are refused, or
        left out and counted with ``missing="drop"``; ``invalid="drop"`` does the same with predictions and
        outcomes outside [0, 1] and weights that are negative or infinite.
        """
        columns = Columns(outcome, prediction, weight, as_names(by))
        check_missing(missing=missing, invalid=invalid)
        frame = as_frame(frame, columns)
        contents = aggregate(frame, columns, grid.check_cells(cells))
        refuse_many_groups(len(contents.labels), columns.by, max_groups)
        refuse(grid.rejected_rows(contents.table, cells), columns, missing, invalid, frame)
        return cls._of(contents)

    @classmethod
    def from_file(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        outcome: str,
        prediction: str,
        weight: str | None = None,
        by: str | list[str] | None = None,
        cells: int = CELLS,
        missing: Missing = "error",
        invalid: Missing = "error",
        progress: Callable[[float], object] | None = None,
        max_groups: int = MAX_GROUPS,
    ) -> Sketch:
        """Sketch a file or glob (CSV, Parquet, JSON lines) through DuckDB, in memory that stays bounded.

        `progress` is called now and then with the share of the work that is done.
        """
        columns = Columns(outcome, prediction, weight, as_names(by))
        check_missing(missing=missing, invalid=invalid)
        size = grid.check_cells(cells)
        return cls._of(aggregate_file(path, columns, size, missing, invalid, progress, max_groups))

    def update(
        self, y_true: Any, y_prob: Any, sample_weight: Any = None, *, missing: Missing = "error"
    ) -> None:
        """Add records to this sketch, in place: micro-batches of a stream, in constant memory."""
        if self.by:
            raise InvalidInputError("update", "needs a sketch without groups", f"got by={list(self.by)}")
        rows = check_records(y_true, y_prob, sample_weight, missing)
        warn_if_swapped(rows)
        w = np.full(len(rows), rows.largest) if rows.weight is None and rows.largest != 1.0 else rows.weight
        with np.errstate(over="ignore"):
            batch = grid.tabulated(rows.outcome.astype(np.float64), rows.prediction + 0.0, w, self.cells)
        if not np.all(np.isfinite(batch.sums)):
            raise InvalidInputError("sample_weight", "must have finite sums of squares")
        self._add(batch)
        if rows.dropped:
            self._add(grid.dropped_rows(self.cells, rows.dropped))

    def _add(self, batch: CellTable) -> None:
        """Add a small table: in place where all its cells are known, by merging where some are new."""
        table = self.contents.table
        place = np.searchsorted(table.keys, batch.keys)
        if len(table) and np.array_equal(table.keys[np.minimum(place, len(table) - 1)], batch.keys):
            table.counts[place] += batch.counts
            table.sums[:, place] += batch.sums
            table.low[place] = np.minimum(table.low[place], batch.low)
            table.high[place] = np.maximum(table.high[place], batch.high)
        else:
            self.contents = replace(self.contents, table=grid.merged_tables([table, batch]))

    def __add__(self, other: object) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        return merge(self, other)

    def __radd__(self, other: object) -> Sketch:
        return merge(self) if other == 0 else NotImplemented  # so that sum(sketches) works, on a copy

    def __repr__(self) -> str:
        count = pluralize(len(self.contents.labels), "group")
        groups = f", {count} by {', '.join(self.by)}" if self.by else ""
        dropped = f", {pluralize(self.dropped, 'row')} left out" if self.dropped else ""
        return f"Sketch(n={self.n:,}, {len(self._whole()):,} of {self.cells:,} cells{groups}{dropped})"

    @property
    def cells(self) -> int:
        """Number of cells between 0 and 1."""
        return self.contents.cells

    @property
    def by(self) -> tuple[str, ...]:
        """Columns that the groups were made by."""
        return self.contents.by

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self._whole().counts.sum())

    @property
    def rejects(self) -> Mapping[str, int]:
        """How many rows were left out, by reason."""
        return MappingProxyType(grid.rejected_rows(self.contents.table, self.cells))

    @property
    def dropped(self) -> int:
        """How many bad rows were left out; rows of weight 0 are not bad, and not counted."""
        return sum(count for reason, count in self.rejects.items() if reason != grid.ZERO_WEIGHT)

    @property
    def groups(self) -> Mapping[Any, Sketch]:
        """A sketch of each group; the key is the value of the `by` column, or a tuple of several."""
        found: dict[Any, Sketch] = {}
        size, labels, table = grid.codes_in_a_group(self.cells), self.contents.labels, self.contents.table
        ends = np.searchsorted(table.keys, np.arange(len(labels) + 1) * size)
        for number, label in enumerate(labels if self.by else ()):
            part = table[ends[number] : ends[number + 1]]
            own = Contents(self.cells, (), ((),), part.renamed(part.keys - number * size))  # a copy
            found[label[0] if len(label) == 1 else label] = Sketch._of(own)
        return MappingProxyType(found)

    def _whole(self) -> CellTable:
        """Return the cells of all groups together, without the rejects."""
        table = self.contents.table
        if self.by:
            table = table.renamed(table.keys % grid.codes_in_a_group(self.cells))
        return table[table.keys < self.cells + 2]

    def forecasts(self) -> Forecasts:
        """Return the Forecasts at this resolution: every measure, test and chart takes them."""
        table = self._whole()
        if not len(table):
            raise InvalidInputError("sketch", "must hold a record", "got none")
        w, ww, wv, wy, wyv, spread, null, mixed = table.sums
        total = float(w.sum())
        grid.check_squares(w, ww)
        # the mean may leave the cell by a rounding error; where all predictions are equal it must be exact
        values = np.clip(wv / w, table.low, table.high)
        cells = Cells(
            low=table.low.copy(),
            high=table.high.copy(),
            over=np.maximum(wv - wyv, 0.0) / total,
            under=np.maximum(wy - wyv, 0.0) / total,
            spread=spread / total,
            null_variance=null / total / total,
        )
        return Forecasts.from_levels(
            values,
            w / total,
            np.clip(wy, 0.0, w) / total,
            squared_weights=ww / total / total,
            counts=table.counts.copy(),
            total_weight=total,
            binary=not mixed.any(),
            dropped=self.dropped,
            cells=cells,
        )

    def strata(self) -> Strata:
        """Return the cells of every group, which is what `audit` reads."""
        table, size = self.contents.table, grid.codes_in_a_group(self.cells)
        table = table[table.keys % size < self.cells + 2]
        number, code = np.divmod(table.keys, size)
        if not self.by:
            hint = 'make it with by=["region", "age"], say'
            raise InvalidInputError("sketch", "must have groups to be audited", "got none", hint)
        if not len(table):
            raise InvalidInputError("sketch", "must hold a record", "got none")
        if table.sums[-1].any():
            raise InvalidInputError("outcomes", "must be 0 or 1", "got a sketch of fractions")
        known, group = np.unique(number, return_inverse=True)
        grid.check_squares(table.sums[0], table.sums[1], group)
        order = np.lexsort((group, code))
        w, ww, wv, wy, wyv, _, null, _ = table.sums[:, order]
        return Strata(
            by=self.by,
            labels=tuple(self.contents.labels[k] for k in known),
            dropped=self.dropped,
            cell=code[order],
            group=group[order],
            counts=table.counts[order],
            weight=w,
            squared_weight=ww,
            predicted=wv,
            outcome=wy,
            both=wyv,
            null_variance=null,
            low=table.low[order],
            high=table.high[order],
        )

    def measure(self, name: str, **options: Any) -> Measurement:
        """Take a measure; [lower, upper] provably contains its value on the raw rows.

        A measure that cannot be bounded from a sketch (ECE, decision loss) raises NoCertificateError.
        """
        return measure(self.forecasts(), name, **options)

    def save(self, path: str | Path) -> None:
        """Write the sketch to a file: Parquet if the name ends in .parquet, else the compact format.

        The file appears complete or not at all, whatever interrupts the writing.
        """
        storage.save_sketch(self.contents, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Sketch:
        """Read a sketch that `save` wrote, in either format."""
        return cls._of(storage.load(Path(path)))

    @property
    def content_id(self) -> str:
        """A digest of the contents: two sketches that share it hold the same sums in the same cells."""
        return storage.content_id(self.contents)

    @property
    def parts(self) -> tuple[str, ...]:
        """How the `content_id` begins of each sketch that was added up to this one; the latest 10,000."""
        return self.contents.parts

    def as_part(self) -> tuple[str, ...]:
        return (self.content_id[:PART_ID_LENGTH],) if self.n else ()

    def to_bytes(self) -> bytes:
        """Return the compact form."""
        return storage.to_bytes(self.contents)

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read the compact form."""
        return cls._of(storage.from_bytes(data))

    def to_arrow(self) -> Any:
        """Return a pyarrow table, one row per cell, with what else is known in its metadata."""
        return storage.to_arrow(self.contents)

    @classmethod
    def from_arrow(cls, table: Any) -> Sketch:
        """Read a table that `to_arrow` made."""
        return cls._of(storage.from_arrow(table))


def merge(*sketches: Sketch) -> Sketch:
    """Add sketches up; they must have the same cells and the same grouping."""
    if not sketches:
        raise InvalidInputError("sketches", "must be one or more", "got none")
    first = sketches[0]
    for other in sketches[1:]:
        if other.cells != first.cells:
            raise InvalidInputError(
                "sketches", "must have the same cells", f"got {first.cells:,} and {other.cells:,}"
            )
        if other.by != first.by:
            got = f"got {list(first.by)} and {list(other.by)}"
            raise InvalidInputError("sketches", "must be grouped by the same columns", got)
    found = [sketch.contents for sketch in sketches]
    known = [label for one in found for label in one.labels]
    refuse_lookalikes(known)
    labels, size = ordered_labels(set(known)), grid.codes_in_a_group(first.cells)
    numbers = {label: number for number, label in enumerate(labels)}
    tables = []
    for one in found:
        moved = np.array([numbers[label] for label in one.labels] or [0], dtype=np.int64)
        group, code = np.divmod(one.table.keys, size)
        tables.append(replace(one.table, keys=moved[group] * size + code))
    parts = [part for sketch in sketches for part in sketch.parts or sketch.as_part()]
    latest_first = list(dict.fromkeys(reversed(parts)))  # each once, where it came last
    kept = tuple(reversed(latest_first[:MAX_PARTS_KEPT]))
    return Sketch._of(Contents(first.cells, first.by, labels, grid.merged_tables(tables), kept))
