"""The slopes behind docs/scale's projections: rows per second and core, bytes per cell, merging per cell.

Each slope is taken at two sizes, in seconds of the processors, so that a busy machine counts for little; the
two must agree for a projection to mean anything.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import calibrant as cb
from benchmarks.harness import Report
from calibrant.sketch import cells
from calibrant.sketch.sketch import merge

SCANNED = (8_000_000, 32_000_000)  # rows, both enough for the kernel
GROUPS = (20, 160)
CELLS = 4096  # per group: what the page advises for thousands of groups
REPEATS = 2
AGREE = 2.0  # times: how far a slope may differ between its two sizes


def main() -> None:
    """Run and save."""
    report = Report("projection")
    with tempfile.TemporaryDirectory() as folder:
        rates = [_scan(report, Path(folder), rows) for rows in SCANNED]
        report.figure("slope of the scan, larger over smaller", max(rates) / min(rates), "", AGREE)
        # 10^4 groups have more cells than the kernel's table holds: DuckDB groups them, so it does here
        with patch.object(cells, "MIN_STREAMED_ROWS", 10**18):
            scans, merging = zip(*(_groups(report, Path(folder), groups) for groups in GROUPS), strict=True)
        report.figure("slope of the scan by groups, larger over smaller", max(scans) / min(scans), "", AGREE)
        report.figure("slope of merging, larger over smaller", max(merging) / min(merging), "", AGREE)
    report.save()


def processor_seconds(action: Callable[[], Any]) -> float:
    """Return the least time of the processors over several runs, after one that is not counted."""
    action()
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def _scan(report: Report, folder: Path, rows: int) -> float:
    """Sketch a Parquet file; the fixed cost of a file of 1,000 rows is taken off."""
    large, small = _parquet(folder, rows), _parquet(folder, 1_000)
    seconds = processor_seconds(lambda: _sketch(large)) - processor_seconds(lambda: _sketch(small))
    report.figure(f"Parquet, {rows:,} rows", large.stat().st_size / rows, "bytes per row")
    report.figure(f"scan, {rows:,} rows", rows / seconds / 1e6, "million rows per second and core")
    return rows / seconds


def _sketch(path: Path, **options: Any) -> cb.Sketch:
    return cb.Sketch.from_file(path, outcome="y", prediction="p", **options)


def _parquet(folder: Path, rows: int, groups: int = 1) -> Path:
    import duckdb

    path = folder / f"{rows}-{groups}.parquet"
    drawn = f"SELECT random() AS p, (random() * 1e9)::INT % {groups} AS g FROM range({rows})"
    query = f"SELECT p, (random() < p)::TINYINT AS y, g FROM ({drawn})"
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def _groups(report: Report, folder: Path, groups: int) -> tuple[float, float]:
    """Sketch by many groups: rows per second, bytes per cell, and the cost of merging two such sketches."""
    rows = 40_000 * groups
    path = _parquet(folder, rows, groups)
    sketch = _sketch(path, by="g", cells=CELLS)
    scan = processor_seconds(lambda: _sketch(path, by="g", cells=CELLS))
    report.figure(f"{groups} groups: scan by groups", rows / scan / 1e6, "million rows per second and core")
    table = sketch.contents.table
    occupied = len(table.keys)
    held = sum(getattr(table, name).nbytes for name in ("keys", "counts", "sums", "low", "high"))
    seconds = processor_seconds(lambda: merge(sketch, sketch))
    report.figure(f"{groups} groups: cells per group", occupied / groups, "")
    report.figure(f"{groups} groups: a cell in memory", held / occupied, "bytes")
    report.figure(f"{groups} groups: a cell on disk", len(sketch.to_bytes()) / occupied, "bytes")
    report.figure(f"{groups} groups: merging", seconds / (2 * occupied) * 1e9, "ns per cell")
    return rows / scan, seconds / occupied


if __name__ == "__main__":
    main()
