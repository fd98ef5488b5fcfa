"""A billion rows on one machine: Parquet in pieces, a sketch by 20 groups, all measures, audit and report.

CALIBRANT_BENCH_BILLION sets the rows (10^9 by default, some 9 GB), CALIBRANT_BENCH_FOLDER where the pieces
are written; they are removed at the end. Nothing is done where less disk is free than 2.5 times what they
take (25 GB for 10^9 rows). Run it by `make bench-billion`; `make bench` leaves it out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Report
from calibrant.sketch.cells import CELLS

ROWS = int(float(os.environ.get("CALIBRANT_BENCH_BILLION", "1e9")))
PIECE = 50_000_000  # rows of one file
FEW = 5_000_000  # rows of a file that takes the same path through the code
GROUPS = 20
BYTES_PER_ROW = 10  # of Parquet: 8 for a random double, the rest for outcome and group
ROOM = 2.5  # times the size of the files
SUMS = "count(*), sum(p), sum(y), sum(y * p), sum(p * (1 - p)), sum(y * (1 - y)), min(p), max(p)"

OURS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from benchmarks.harness import peak_memory
from calibrant import Sketch, evaluate, measure, measures
start = time.perf_counter()
last = [start]
def progress(share):
    now = time.perf_counter()
    if now - last[0] > 5 and share > 0:
        last[0] = now
        left = (now - start) * (1 - share) / share
        print(f"  {100 * share:.0f} %, {left:.0f} s left", file=sys.stderr, flush=True)
sketch = Sketch.from_file(sys.argv[1], outcome="y", prediction="p", by="g", progress=progress)
scanned, processor = time.perf_counter(), time.process_time()
forecasts = sketch.forecasts()
taken = {row.name: measure(forecasts, row.name) for row in measures().values() if row.certified}
measured = time.perf_counter()
found = evaluate(sketch, draws=99, seed=1)  # the audit of the groups is part of it
evaluated = time.perf_counter()
found.to_html(sys.argv[2])
end = time.perf_counter()
print(json.dumps({
    "n": forecasts.n, "scan": scanned - start, "measures": measured - scanned,
    "evaluation with audit": evaluated - measured, "report": end - evaluated, "all": end - start,
    "processor": processor,
    "peak": peak_memory(),
    "smooth": taken["smooth"].upper - taken["smooth"].lower, "pvalue": found.audit.pvalue,
}))
"""

GROUP_BY = """
import json, sys, time, duckdb
path, cells, sums = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")  # it draws where the figures are written
start = time.perf_counter()
query = f"SELECT g, floor(p * {cells})::INT AS c, {sums} FROM '{path}' GROUP BY g, c"
connection.execute(query).fetchnumpy()
print(json.dumps({"all": time.perf_counter() - start, "processor": time.process_time()}))
"""


def main() -> None:
    """Run and save, or say that the disk is too small."""
    report = Report("billion" if ROWS >= 10**9 else "billion-small")
    folder = Path(os.environ.get("CALIBRANT_BENCH_FOLDER", tempfile.gettempdir())) / "calibrant-billion"
    needed, free = ROOM * BYTES_PER_ROW * ROWS, shutil.disk_usage(folder.parent).free
    if free < needed:
        report.skipped(f"{ROWS:,} rows", f"{needed / 1e9:.0f} GB must be free, {free / 1e9:.0f} GB are")
        report.save()
        return
    try:
        _measured(report, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.save()


def _measured(report: Report, folder: Path) -> None:
    few = _generated(folder / "few", FEW)  # machine code is made before the clock starts
    _run(OURS, few, str(folder / "few.html"))
    began = time.perf_counter()
    pieces = _generated(folder, ROWS)
    report.figure("rows", ROWS, "rows")
    report.figure("pieces written in", time.perf_counter() - began)
    report.figure("size of the pieces", sum(f.stat().st_size for f in folder.glob("*.parquet")) / 1e9, "GB")
    # each side in a process of its own, ours first: the second one finds the files in memory
    ours = json.loads(_run(OURS, pieces, str(folder / "report.html")))
    group_by = json.loads(_run(GROUP_BY, pieces, str(CELLS), SUMS))
    bare = group_by["all"]
    report.ratio("sketch by 20 groups", ours["scan"], "DuckDB's group-by of the same sums", bare)
    report.ratio(
        "sketch, all certified measures, audit and report",
        ours["all"],
        "DuckDB's group-by of the same sums",
        bare,
        1.2 + 3 / bare,
        headline=True,
    )
    report.ratio(
        "sketch by 20 groups, time of the processors",
        ours["processor"],
        "the group-by, likewise",
        group_by["processor"],
    )
    for name in ("measures", "evaluation with audit", "report"):
        report.figure(f"of these: {name}", ours[name])
    report.figure("peak memory of that process", ours["peak"], "MB", 1024)
    report.figure("width of the certificate of smooth", ours["smooth"], "")
    report.figure("p-value of the audit", ours["pvalue"], "")


def _generated(folder: Path, total: int) -> str:
    """Write calibrated outcomes in pieces, with time left; return the glob that reads them."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    connection, began = duckdb.connect(), time.perf_counter()
    connection.execute("SET enable_progress_bar = false")
    starts = range(0, total, PIECE)
    for k, start in enumerate(starts):
        few = min(PIECE, total - start)
        rows = f"SELECT random() AS p, (random() * 1e9)::INT % {GROUPS} AS g FROM range({few})"
        query = f"SELECT p, (random() < p)::TINYINT AS y, g::TINYINT AS g FROM ({rows})"
        connection.execute(f"COPY ({query}) TO '{folder}/{k:03d}.parquet' (FORMAT parquet)")
        left = (time.perf_counter() - began) / (k + 1) * (len(starts) - k - 1)
        print(f"  piece {k + 1} of {len(starts)}, {left:.0f} s left", file=sys.stderr, flush=True)
    return f"{folder}/*.parquet"


def _run(code: str, *arguments: str) -> str:
    """Run code in a process of its own; its progress goes where ours goes."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    main()
