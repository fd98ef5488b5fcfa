"""calibrant apply at size: maps of several kinds on a Parquet file, beside DuckDB copying the same file.

The file written has one more column than the copy, so the copy with a column of products is measured too: no
map can take less. CALIBRANT_BENCH_ROWS and CALIBRANT_BENCH_FOLDER are as for benchmarks/scale.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, seconds
from benchmarks.scale import ROWS, generated

METHODS = ("platt", "isotonic", "spline", "venn-abers")
FITTED_TO = 100_000
APPLY = """
import json, resource, sys, time
from calibrant import load_recalibration
from calibrant.scale.apply_file import apply_file
fitted = load_recalibration(sys.argv[1])
start, cpu = time.perf_counter(), time.process_time()
apply_file(fitted, sys.argv[2], sys.argv[3], prediction="p", into="q")
took = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
print(json.dumps({**took, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def main() -> None:
    """Run and save."""
    report = Report("apply")
    folder = os.environ.get("CALIBRANT_BENCH_FOLDER")
    if folder:
        _measured(report, Path(folder))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            _measured(report, Path(temporary))
    report.save()


def _measured(report: Report, folder: Path) -> None:
    source, target = generated(folder), folder / "applied.parquet"
    report.figure("rows of the Parquet file", ROWS, "rows")
    copy = seconds(lambda: _copied(source, target, "*"), 2)
    wider = seconds(lambda: _copied(source, target, "*, p * 0.999e0 AS q"), 2)
    report.figure("DuckDB copies the file", copy)
    report.ratio("DuckDB copies the file with one more column", wider, "copy", copy)
    rng = np.random.default_rng(0)
    p = rng.random(FITTED_TO)
    y = rng.random(FITTED_TO) < p**1.3
    for method in METHODS:
        cb.recalibrate(y, p, method=method, seed=0).save(folder / "map.json")
        took = _applied(folder / "map.json", source, target)
        report.ratio(f"apply, {method}", took["wall"], "copy", copy, 2)
        report.ratio(f"apply, {method}", took["wall"], "copy with one more column", wider)
        report.figure(f"apply, {method}, peak memory", took["peak"], "MB", 1_000)
        target.unlink()


def _copied(source: Path, target: Path, columns: str) -> None:
    import duckdb

    with duckdb.connect(config={"memory_limit": "512MB"}) as connection:
        connection.execute(f"COPY (SELECT {columns} FROM '{source}') TO '{target}' (FORMAT parquet)")


def _applied(fitted: Path, source: Path, target: Path) -> dict[str, Any]:
    arguments = [sys.executable, "-c", APPLY, str(fitted), str(source), str(target)]
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(json.loads(lines[-1]))


if __name__ == "__main__":
    main()
