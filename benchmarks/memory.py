"""Peak memory of every command that reads rows, on 30 million rows of Parquet, next to its stated bound.

Commands that measure a sketch, copy rows or watch them in order take all of them. The others hold the rows
they read, refuse more than a fixed number, and are measured at that number. CALIBRANT_BENCH_FOLDER is as for
benchmarks/scale.py. `python -m benchmarks memory -- abstain "evaluate --time"` measures these rows alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.harness import Report

MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(process.returncode, usage.ru_maxrss)
"""  # a small process starts the command, which inherits the peak of the one that starts it
ROWS = 30_000_000
LIMIT = 2_000  # MB
COLUMNS = ("-y", "y", "-p", "p")
BOUNDED = {
    "evaluate": ("evaluate", "ROWS", *COLUMNS),
    "check": ("check", "ROWS", *COLUMNS, "--max", "smooth=0.1"),
    "test": ("test", "ROWS", *COLUMNS),
    "audit --groups": ("audit", "ROWS", *COLUMNS, "--groups", "g"),
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
HELD = {  # the most rows that each of these takes
    "abstain": (10_000_000, (*COLUMNS, "--risk", "0.2")),
    "evaluate --json": (10_000_000, (*COLUMNS, "--json", "-o", "report.json")),
    "verify": (10_000_000, COLUMNS),
    "distributions": (10_000_000, ("-y", "x", "--lower", "low", "--upper", "high", "--coverage", "0.8")),
    "compare": (5_000_000, ("-y", "y", "-p", "p", "-p", "x")),
    "stream": (5_000_000, COLUMNS),
    "classes": (2_500_000, ("-y", "y", "-p", "q", "-p", "p", "--labels", "0,1")),
    "distinguish": (2_500_000, (*COLUMNS, "--covariates", "x,g")),
    "evaluate --time": (2_500_000, ("--time", "x", "--event", "y", "--horizon", "0.9", "-p", "p")),
}


def main(*names: str) -> None:
    """Measure the rows named ("abstain", "refused: verify"), or all of them; others keep their figures."""
    report = Report("memory")
    report.figure("rows", ROWS, "rows")
    folder = os.environ.get("CALIBRANT_BENCH_FOLDER")
    with tempfile.TemporaryDirectory() as temporary:
        runs = measured(Path(folder or temporary))
        for name in names:
            if not any(is_named(what, name) for what in runs):
                raise SystemExit(f"{name!r} must be one of {', '.join(runs)}")
        for what, run in runs.items():
            if not names or any(is_named(what, name) for name in names):
                report.figure(what, run(), "MB", LIMIT)
                report.save(keep=True)


def is_named(what: str, name: str) -> bool:
    """Return whether a row is the one of this name, which leaves out the number of rows or groups."""
    return f"{what},".startswith((f"{name},", f"held: {name},"))


def measured(place: Path) -> dict[str, Callable[[], float]]:
    """Return what to run for each row of the table."""
    runs = {what: partial(peak, words, ROWS, place, (0, 1)) for what, words in BOUNDED.items()}
    runs |= {f"refused: {what}": partial(peak, words, ROWS, place, (2,)) for what, words in REFUSED.items()}
    for what, (most, words) in HELD.items():
        command = ("verify", "report.json") if what == "verify" else (what.split()[0],)
        typed = (*command, "ROWS", *words)
        runs[f"held: {what}, {most:,} rows"] = partial(peak, typed, most, place, (0, 1))
        if what != "evaluate --json":
            runs[f"refused: {what}"] = partial(peak, typed, ROWS, place, (2,))
    return runs


def peak(words: tuple[str, ...], count: int, folder: Path, codes: tuple[int, ...]) -> float:
    """Run a command on that many rows, after what it needs; return its peak memory in MB."""
    rows = rows_file(folder, count)
    if "bomb.parquet" in words:
        write_bomb(folder / "bomb.parquet")
    needed = {
        "map.json": BOUNDED["recalibrate"],
        "report.json": ("evaluate", "ROWS", *HELD["evaluate --json"][1]),
    }
    for name, first in needed.items():
        if name in words and words != first and not (folder / name).exists():
            peak(first, count, folder, (0, 1))
    typed = [rows if word == "ROWS" else word for word in words]
    start = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, sys.executable, "-m", "calibrant", *typed],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    code, kilobytes = map(int, found.stdout.split())
    print(f"  calibrant {' '.join(words)}: exit code {code}, {time.monotonic() - start:.0f} s", flush=True)
    if code not in codes:
        raise RuntimeError(f"calibrant {' '.join(words)} ended with exit code {code}")
    return kilobytes / 1024


def rows_file(folder: Path, rows: int) -> str:
    """Return the name of a file of calibrated predictions, which DuckDB writes if need be."""
    path = folder / f"memory-{rows}.parquet"
    if not path.exists():
        drawn = f"SELECT range AS row, random() AS p, random() AS x FROM range({rows})"
        columns = "(random() < p)::INT AS y, p, 1 - p AS q, x, row % 7 AS g, row // 3 AS id"
        write_parquet(f"SELECT {columns}, p - 0.4 AS low, p + 0.4 AS high FROM ({drawn})", path)
    return str(path)


def write_bomb(path: Path) -> None:
    """Write a few megabytes of Parquet that say they are a sketch of 60 million cells."""
    from calibrant.sketch.cells import MAX_CELLS, SUMS

    names = ["group", "cell", "count", *SUMS, "low", "high"]
    cells = ", ".join(f'0.0::DOUBLE AS "{name}"' for name in names)
    header = json.dumps({"version": 2, "cells": MAX_CELLS, "by": [], "labels": [[]], "checksum": "0"})
    keys = f", KV_METADATA {{calibrant_sketch: '{header}'}}"
    write_parquet(f"SELECT {cells} FROM range(60_000_000)", path, keys)


def write_parquet(query: str, path: Path, options: str = "") -> None:
    """Let DuckDB write a file in another process, whose peak the commands do not inherit."""
    copy = f"COPY ({query}) TO '{path}' (FORMAT parquet{options})"
    work = f"import duckdb; duckdb.connect(config={{'memory_limit': '700MB'}}).execute({copy!r})"
    subprocess.run([sys.executable, "-c", work], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
