"""A CSV of 10^5 rows to the full report, a fresh process each time, next to probcal's evaluate at 10^3."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks.harness import Report, forecast_data, peer, version

ROWS = 10**5
LARGEST = 2.0  # megabytes of a report


def main() -> None:
    """Run and save."""
    report = Report("report")
    with tempfile.TemporaryDirectory() as folder:
        data, page = Path(folder) / "forecasts.csv", Path(folder) / "report.html"
        _write(data)
        first, second = _run(data, page), _run(data, page)
        report.figure("report of 10^5 rows, first process", first)
        report.ratio("report of 10^5 rows, second process", second, "the first", first, 1.25)
        report.figure("size of that report", page.stat().st_size / 1e6, "MB", LARGEST)
    metrics = peer("probcal.metrics")
    if metrics is None:
        report.skipped("report of 10^5 rows", "probcal is not installed")
    else:
        theirs = _probcal(metrics)
        peer_name = f"{version('probcal')} evaluate, 10^3 rows"
        report.ratio("report of 10^5 rows", second, peer_name, theirs, 1, headline=True)
    report.save()


def _write(target: Path) -> None:
    """Write predictions, outcomes and two columns of groups."""
    y, v = forecast_data(ROWS)
    rng = np.random.default_rng(1)
    region, age = rng.integers(0, 5, ROWS), rng.integers(18, 80, ROWS) // 10
    rows = (f"{a},{b:d},region {c},{d}\n" for a, b, c, d in zip(v, y, region, age, strict=True))
    target.write_text("p,y,region,age\n" + "".join(rows))


def _run(data: Path, page: Path) -> float:
    """Time the command line from nothing to the page, imports included."""
    command = [sys.executable, "-m", "calibrant", "evaluate", str(data)]
    options = ["--outcome", "y", "--prediction", "p", "--groups", "region,age", "--seed", "1", "--html"]
    start = time.perf_counter()
    subprocess.run([*command, *options, str(page)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _probcal(metrics: ModuleType) -> float:
    """Time one call of the peer's evaluate, which takes seconds: no warming up, as for ours."""
    y, v = forecast_data(10**3)
    start = time.perf_counter()
    metrics.evaluate(y.astype(int), v)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
