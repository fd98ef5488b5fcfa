"""calibrant apply at size: maps of several kinds on two Parquet files, next to DuckDB copying the same file.

One file has six columns, as files of predictions have: an identifier, a day, a region, an amount, the outcome
and the prediction. The other has prediction and outcome alone, the hardest case: the column that apply adds
is then as large as all that was there. The yardstick is DuckDB's COPY of the same query: the file with the
map as an SQL expression. CALIBRANT_BENCH_ROWS and CALIBRANT_BENCH_FOLDER are as for benchmarks/scale.py.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, memory_at_hand
from benchmarks.scale import ROWS, generated

WIDE, GROUPS, GROUP_ROWS = 300, 100, 2048
TURNS = 3  # copies and maps one after the other, so that a slow minute of the disk meets all; medians count
METHODS = ("platt", "isotonic", "spline", "venn-abers")
FITTED_TO = 100_000
APPLY = """
import json, sys, time
from pathlib import Path
from benchmarks.harness import memory_at_hand, peak_memory
from calibrant import load_recalibration
from calibrant.io.apply_file import apply_file
fitted = load_recalibration(sys.argv[1])
memory_at_hand(Path(sys.argv[3]).parent, int(sys.argv[4]))
start, cpu = time.perf_counter(), time.process_time()
apply_file(fitted, sys.argv[2], sys.argv[3], prediction="p", into="q")
took = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
print(json.dumps({**took, "peak": peak_memory()}))
"""


def main() -> None:
    """Run and save."""
    folder = os.environ.get("CALIBRANT_BENCH_FOLDER")
    with tempfile.TemporaryDirectory() as temporary:
        report = Report("apply")
        _measured(report, Path(folder or temporary))
        report.save()
        wide(Path(folder or temporary))


def wide(folder: Path) -> None:
    """Measure a file of many columns in small row groups, and save: each chunk of a column costs time."""
    report = Report("apply_wide")
    source = wide_file(folder)
    report.figure("size of the Parquet file", source.stat().st_size / 1e6, "MB")
    target, times = source.parent / "applied.parquet", []
    fitted = _maps(folder)["platt"]
    for _ in range(TURNS):
        copied = _copied(source, target, "*, p * 0.999e0 AS q", memory_limit=None)
        times.append((copied["wall"], _applied(fitted, source, target)))
    copy = statistics.median(wall for wall, _ in times)
    ours = statistics.median(applied["wall"] for _, applied in times)
    report.ratio(f"{WIDE} columns x {GROUPS} row groups: apply, platt", ours, "copy by DuckDB", copy, 1)
    peak = max(applied["peak"] for _, applied in times)
    report.figure("peak memory", peak, "MB", 1_000)
    target.unlink()
    report.save()


def wide_file(folder: Path) -> Path:
    """Return a file of numbers, whole numbers and words in turn, which pyarrow writes if need be."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"wide-{WIDE}-{GROUPS}.parquet"
    rng, words = np.random.default_rng(0), np.array(["north", "south", "east", "west"])
    kinds = [
        lambda: rng.normal(size=GROUP_ROWS),
        lambda: rng.integers(0, 1000, GROUP_ROWS),
        lambda: words[rng.integers(0, 4, GROUP_ROWS)],
    ]
    if path.exists():
        return path
    writer = None
    for _ in range(GROUPS):
        columns = {f"c{k}": kinds[k % 3]() for k in range(WIDE - 1)}
        table = pa.table({**columns, "p": rng.random(GROUP_ROWS)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return path


def _measured(report: Report, folder: Path) -> None:
    report.figure("rows of each Parquet file", ROWS, "rows")
    maps = _maps(folder)
    for columns, source in (("six columns", six_columns(folder)), ("two columns", generated(folder))):
        _on_file(report, columns, source, maps)


def _on_file(report: Report, columns: str, source: Path, maps: dict[str, Path]) -> None:
    """Measure copies and maps on one file."""
    target = source.parent / "applied.parquet"
    queries = {name: cb.load_recalibration(fitted).to_sql("p") for name, fitted in maps.items()}
    turns = []
    for _ in range(TURNS):
        turn = {"copy": _copied(source, target, "*")}
        for name, fitted in maps.items():
            turn[f"query of {name}"] = _copied(source, target, f"*, {queries[name]} AS q")
            turn[name] = _applied(fitted, source, target)
        turns.append(turn)
    median = {name: statistics.median(turn[name]["wall"] for turn in turns) for name in turns[0]}
    report.figure(f"{columns}: DuckDB copies the file", median["copy"])
    for method in maps:
        query = median[f"query of {method}"]
        report.ratio(
            f"{columns}: apply, {method}", median[method], "DuckDB's COPY of the same query", query, 2
        )
        peak = max(turn[method]["peak"] for turn in turns)
        report.figure(f"{columns}: apply, {method}, peak memory", peak, "MB", 1_000)
    target.unlink()


def _maps(folder: Path) -> dict[str, Path]:
    """Fit each method and save its map."""
    rng = np.random.default_rng(0)
    p = rng.random(FITTED_TO)
    y = rng.random(FITTED_TO) < p**1.3
    saved = {method: folder / f"{method}.json" for method in METHODS}
    for method, path in saved.items():
        cb.recalibrate(y, p, method=method, seed=0).save(path)
    return saved


def six_columns(folder: Path) -> Path:
    """Return a file of loans by day, with outcomes and predictions; DuckDB writes it if need be."""
    import duckdb

    path = folder / f"loans-{ROWS}.parquet"
    if not path.exists():
        day = f"DATE '2024-01-01' + (range * 730 // {ROWS})::INT AS day"
        region = "['north', 'south', 'east', 'west', 'abroad'][1 + floor(random() * 5)::INT] AS region"
        amount = "round(exp(4 + 4 * random()), 2) AS amount"
        rows = f"SELECT range AS id, {day}, {region}, {amount}, random() AS p FROM range({ROWS})"
        query = f"SELECT id, day, region, amount, (random() < p)::INT AS y, p FROM ({rows})"
        path.parent.mkdir(parents=True, exist_ok=True)
        duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def _size(source: Path) -> int:
    """Return the bytes of the file with one more column of numbers."""
    return source.stat().st_size + 8 * ROWS


def _copied(source: Path, target: Path, columns: str, memory_limit: str | None = "512MB") -> dict[str, float]:
    import duckdb

    target.unlink(missing_ok=True)
    memory_at_hand(target.parent, _size(source))
    start = time.perf_counter()
    with duckdb.connect(config={"memory_limit": memory_limit} if memory_limit else {}) as connection:
        connection.execute(f"COPY (SELECT {columns} FROM '{source}') TO '{target}' (FORMAT parquet)")
    return {"wall": time.perf_counter() - start}


def _applied(fitted: Path, source: Path, target: Path) -> dict[str, Any]:
    target.unlink(missing_ok=True)
    arguments = [sys.executable, "-c", APPLY, str(fitted), str(source), str(target), str(_size(source))]
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(json.loads(lines[-1]))


if __name__ == "__main__":
    main()
