"""Sketches at size: a Parquet file into all certified measures, next to DuckDB's bare group-by of its sums.

CALIBRANT_BENCH_ROWS sets the rows (10^8 by default, a file of about 800 MB), CALIBRANT_BENCH_FOLDER where the
file is kept for the next run (a temporary folder by default).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, seconds
from calibrant.sketch.cells import CELLS
from calibrant.sketch.sketch import merge

ROWS = int(float(os.environ.get("CALIBRANT_BENCH_ROWS", "1e8")))
REPEATS = 3

SUMS = "count(*), sum(p), sum(y), sum(y * p), sum(p * (1 - p)), sum(y * (1 - y)), min(p), max(p)"
MEASURES = """
import sys, json, time, warnings
warnings.simplefilter("ignore")
from benchmarks.harness import peak_memory
from calibrant import Sketch, measures
def once():
    start = time.perf_counter()
    sketch = Sketch.from_file(sys.argv[1], outcome="y", prediction="p")
    middle = time.perf_counter()
    forecasts = sketch.forecasts()
    from calibrant import measure
    taken = {row.name: measure(forecasts, row.name) for row in measures().values() if row.certified}
    end = time.perf_counter()
    widths = {name: m.upper - m.lower for name, m in taken.items()}
    return {"sketch": middle - start, "all": end - start, "widths": widths}
first = once()
best = min((once() for _ in range(int(sys.argv[2]))), key=lambda run: run["all"])
peak = peak_memory()
print(json.dumps({**best, "first": first["all"], "peak": peak}))
"""


def main() -> None:
    """Run and save."""
    report = Report("scale")
    report.figure("rows of the Parquet file", ROWS, "rows")
    folder = os.environ.get("CALIBRANT_BENCH_FOLDER")
    if folder:
        _parquet(report, generated(Path(folder)))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            _parquet(report, generated(Path(temporary)))
    _sketches(report)
    report.save()


def generated(folder: Path) -> Path:
    """Return a file of continuous predictions and calibrated outcomes; DuckDB writes it if need be."""
    import duckdb

    path = folder / f"predictions-{ROWS}.parquet"
    if not path.exists():
        rows = f"SELECT random() AS p FROM range({ROWS})"
        query = f"SELECT p, (random() < p)::TINYINT AS y FROM ({rows})"
        path.parent.mkdir(parents=True, exist_ok=True)
        duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def _parquet(report: Report, path: Path) -> None:
    import duckdb

    report.figure("size of the Parquet file", path.stat().st_size / 1e6, "MB")
    connection = duckdb.connect()

    def bare(cells: int) -> float:
        query = f"SELECT floor(p * {cells})::INT AS c, {SUMS} FROM '{path}' GROUP BY c"
        return seconds(lambda: connection.execute(query).fetchnumpy(), REPEATS)

    means = seconds(lambda: connection.execute(f"SELECT avg(p), avg(y) FROM '{path}'").fetchall(), REPEATS)
    group_by = bare(CELLS)
    report.figure("DuckDB: select avg(p), avg(y)", means)
    report.figure("DuckDB: bare group-by into 4,096 cells", bare(4096))
    connection.close()
    done = subprocess.run(
        [sys.executable, "-c", MEASURES, str(path), str(REPEATS)], capture_output=True, text=True, check=True
    )
    ours = json.loads(done.stdout)
    report.ratio("Parquet file into a sketch", ours["sketch"], "DuckDB's bare group-by", group_by)
    report.ratio(
        "Parquet file into a sketch and all certified measures",
        ours["all"],
        "DuckDB's bare group-by",
        group_by,
        1.5 + 1 / group_by,  # 1.5 times the group-by, plus one second
        headline=True,
    )
    report.figure("the same, first run of a process", ours["first"])
    report.figure("peak memory of that process", ours["peak"], "MB", 1024)
    for name, width in ours["widths"].items():
        limit = 2e-5 if name == "smooth" else None
        report.figure(f"width of the certificate of {name}", width, "", limit)


def _sketches(report: Report) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(10**7)
    y = (rng.random(10**7) < p).astype(np.float64)
    ours = seconds(lambda: cb.Sketch.from_arrays(y, p), REPEATS)
    report.ratio("sketch of arrays of 10^7 records", ours, "np.sort", seconds(lambda: np.sort(p), REPEATS))
    sketch = cb.Sketch.from_arrays(y, p)
    batch = y[:10_000], p[:10_000]
    report.figure("update by 10,000 records", seconds(lambda: sketch.update(*batch), 20) * 1e3, "ms")
    data = sketch.to_bytes()
    report.figure("a full sketch on disk", len(data) / 1e6, "MB")
    report.figure("a full sketch in memory", sum(_bytes(sketch)) / 1e6, "MB")
    days = [cb.Sketch.from_bytes(data) for _ in range(30)]
    report.figure("merge of 30 full sketches", seconds(lambda: merge(*days), REPEATS))


def _bytes(sketch: cb.Sketch) -> list[int]:
    table = sketch.contents.table
    return [getattr(table, name).nbytes for name in ("keys", "counts", "sums", "low", "high")]


if __name__ == "__main__":
    main()
