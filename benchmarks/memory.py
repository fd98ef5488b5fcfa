"""Peak memory of the commands on 30 million rows of Parquet, next to the bound that is stated for each.

Commands that can measure a sketch, copy rows or watch them in order have a bound of their own. The others
hold the rows they read; they are measured on a tenth of the rows, and their bound is in bytes per row.
CALIBRANT_BENCH_FOLDER is as for benchmarks/scale.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Report

ROWS, FEWER = 30_000_000, 3_000_000
LIMIT = 2_000  # MB
COLUMNS = ("-y", "y", "-p", "p")
BOUNDED = {
    "evaluate": ("evaluate", "ROWS", *COLUMNS),
    "check": ("check", "ROWS", *COLUMNS, "--max", "smooth=0.1"),
    "test": ("test", "ROWS", *COLUMNS),
    "recalibrate": ("recalibrate", "ROWS", *COLUMNS, "-o", "map.json"),
    "apply": ("apply", "map.json", "ROWS", "-p", "p", "-o", "applied.parquet"),
    "sketch": ("sketch", "ROWS", *COLUMNS, "-o", "rows.sketch"),
    "sketch --by, 7 groups": ("sketch", "ROWS", *COLUMNS, "--by", "g", "-o", "groups.sketch"),
    "monitor": ("monitor", "ROWS", *COLUMNS),
}
REFUSED = {
    "sketch --by, 10^7 groups": ("sketch", "ROWS", *COLUMNS, "--by", "id", "-o", "many.sketch"),
    "evaluate, a Parquet sketch that unpacks to 6 GB": ("evaluate", "bomb.parquet"),
    "recalibrate --covariates": ("recalibrate", "ROWS", *COLUMNS, "--covariates", "g", "-o", "other.json"),
}
ROW_BYTES = {
    "abstain": (("abstain", "FEWER", *COLUMNS, "--risk", "0.2"), 500),
    "audit --groups": (("audit", "FEWER", *COLUMNS, "--groups", "g", "--draws", "0"), 500),
    "compare": (("compare", "FEWER", "-y", "y", "-p", "p", "-p", "x", "--draws", "19"), 500),
    "stream": (("stream", "FEWER", *COLUMNS), 500),
}


def main() -> None:
    """Run and save."""
    report = Report("memory")
    folder = os.environ.get("CALIBRANT_BENCH_FOLDER")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(folder or temporary)
        names = {"ROWS": rows_file(place, ROWS), "FEWER": rows_file(place, FEWER)}
        write_bomb(place / "bomb.parquet")
        report.figure("rows", ROWS, "rows")
        for what, words in BOUNDED.items():
            report.figure(what, peak(words, names, place, (0, 1)), "MB", LIMIT)
        for what, words in REFUSED.items():
            report.figure(f"refused: {what}", peak(words, names, place, (2,)), "MB", LIMIT)
        base = peak(("measures",), names, place, (0,))
        for what, (words, bound) in ROW_BYTES.items():
            held = (peak(words, names, place, (0, 1)) - base) * 2**20 / FEWER
            report.figure(f"per row: {what}", held, "bytes", bound)
    report.save()


def peak(words: tuple[str, ...], names: dict[str, str], folder: Path, codes: tuple[int, ...]) -> float:
    """Run a command; return the most memory that it held, in MB."""
    typed = [names.get(word, word) for word in words]
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant", *typed],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    start = time.monotonic()
    _, status, usage = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    print(f"  calibrant {' '.join(words)}: exit code {code}, {time.monotonic() - start:.0f} s", flush=True)
    if code not in codes:
        raise RuntimeError(f"calibrant {' '.join(words)} ended with exit code {code}")
    return usage.ru_maxrss / 1024


def rows_file(folder: Path, rows: int) -> str:
    """Return the name of a file of calibrated predictions, which DuckDB writes if need be."""
    import duckdb

    path = folder / f"memory-{rows}.parquet"
    if not path.exists():
        drawn = f"SELECT range AS row, random() AS p, random() AS x FROM range({rows})"
        query = f"SELECT (random() < p)::INT AS y, p, x, row % 7 AS g, row // 3 AS id FROM ({drawn})"
        with duckdb.connect(config={"memory_limit": "700MB"}) as connection:
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return str(path)


def write_bomb(path: Path) -> None:
    """Write a few megabytes of Parquet that say they are a sketch of 60 million cells."""
    import duckdb

    from calibrant.sketch.cells import MAX_CELLS, SUMS

    names = ["group", "cell", "count", *SUMS, "low", "high"]
    cells = ", ".join(f'0.0::DOUBLE AS "{name}"' for name in names)
    header = json.dumps({"version": 2, "cells": MAX_CELLS, "by": [], "labels": [[]], "checksum": "0"})
    options = f"FORMAT parquet, KV_METADATA {{calibrant_sketch: '{header}'}}"
    with duckdb.connect(config={"memory_limit": "700MB"}) as connection:
        connection.execute(f"COPY (SELECT {cells} FROM range(60_000_000)) TO '{path}' ({options})")


if __name__ == "__main__":
    main()
