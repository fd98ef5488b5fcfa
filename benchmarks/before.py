"""No speed lost: the measures and the most-used functions, next to an earlier revision.

    CALIBRANT_BENCH_BEFORE=REVISION python -m benchmarks before

Each call has a process of its own per version, on the same data, and the two are asked for one call each in
turn: what ran before in the same process decides the memory that a call gets, and with it the time of a
millisecond; and machines have slow seconds. The best time of each version counts, over processes started
several times. What the earlier revision did not have is left out. Last, a report from the command line: whole
processes, in turns, of which the medians count.
"""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 3  # processes are restarted: their memory layout is luck
REPEATS = 40
ENOUGH = 1.5  # seconds that both versions of a call are given per round, once they have started
SLOWER = 1.25  # below that, this is noise of the machine
TURNS = 7  # of a report, after one of each version that is not counted (compilation, caches)
SOURCE = Path(__file__).parent.parent / "src"


def calls() -> dict[str, Callable[[], Any]]:
    """What is timed: names and calls that old versions know as well."""
    import numpy as np

    import calibrant as cb

    rng = np.random.default_rng(1)

    def rows(n: int) -> tuple[Any, Any]:
        p = rng.random(n)
        return (rng.random(n) < p).astype(float), p

    (y, p), (many_y, many_p), (few_y, few_p) = rows(10**5), rows(10**6), rows(5_000)
    groups = {"a": rng.integers(0, 8, 10**5), "b": rng.integers(0, 5, 10**5)}
    weight, tied = rng.random(10**6) + 0.1, many_p.round(3)
    half = np.where(rng.random(10**6) < 0.5, many_p, tied)
    known: dict[str, Callable[[], Any]] = {
        f"{name}, 1e5": lambda row=row: row.function(y, p, **dict(row.options))
        for name, row in cb.measures().items()
        if name != "upper-distance"  # its search goes on until its time is up
    }
    return known | {
        "smooth, 1e6": lambda: cb.smooth_calibration_error(many_y, many_p),
        "Forecasts, 1e6": lambda: cb.Forecasts(many_y, many_p),
        "Forecasts, weighted, 1e6": lambda: cb.Forecasts(many_y, many_p, sample_weight=weight),
        "Forecasts, weighted and tied, 1e6": lambda: cb.Forecasts(many_y, tied, sample_weight=weight),
        "Forecasts, weighted, half tied, 1e6": lambda: cb.Forecasts(many_y, half, sample_weight=weight),
        "Forecasts, fractions, tied, 1e6": lambda: cb.Forecasts(many_p, tied),
        "calibration_test, 1e5": lambda: cb.calibration_test(y, p, seed=1),
        "confidence_interval, brier, 5e3": lambda: cb.confidence_interval(
            few_y, few_p, measure="brier", seed=1
        ),
        "compare, 5e3": lambda: cb.compare(few_y, {"a": few_p, "b": few_p**1.3}, seed=1),  # far from 5%
        "audit, 1e5": lambda: cb.audit(y, p, groups=groups, seed=1),
        "evaluate, 1e5": lambda: cb.evaluate(y, p, seed=1).to_dict(),
        "Sketch, 1e6": lambda: cb.Sketch.from_arrays(many_y, many_p),
    }


def serve(name: str) -> None:
    """Answer every line of input with the time of one call; end where the call does not work."""
    call = calls()[name]
    call()
    for _ in sys.stdin:
        start = time.perf_counter()
        call()
        print(time.perf_counter() - start, flush=True)


def started(source: Path, name: str) -> subprocess.Popen[str]:
    """Start a process that makes one call, of the version below a folder, whenever it is asked."""
    return subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", __file__, name],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def one_time(process: subprocess.Popen[str]) -> float:
    """Return the time of the next call; infinite where that version does not have it."""
    assert process.stdin
    assert process.stdout
    try:
        print(file=process.stdin, flush=True)
    except BrokenPipeError:  # the process ended when its first call failed
        return math.inf
    return float(process.stdout.readline() or math.inf)


def in_turn(sources: tuple[Path, Path], name: str) -> tuple[float, float]:
    """Return the best times of both versions, called in turn: a slow second of the machine meets both."""
    first, second = processes = [started(source, name) for source in sources]
    best, begun = (one_time(first), one_time(second)), time.perf_counter()
    for _ in range(REPEATS):
        if math.inf in best or time.perf_counter() - begun > ENOUGH:
            break
        best = min(best[0], one_time(first)), min(best[1], one_time(second))
    for process in processes:
        process.communicate()
    return best


def _reports(sources: tuple[Path, Path], folder: Path) -> list[float]:
    """Return how long each version takes from the command to the page."""
    import statistics

    from benchmarks.startup import evaluated, written

    rows, page = written(folder, 10**5), str(folder / "page.html")
    times = [
        [evaluated(rows, "--html", page, PYTHONPATH=str(source)) for source in sources]
        for _ in range(TURNS + 1)
    ]
    return [statistics.median(taken) for taken in zip(*times[1:], strict=True)]


def main() -> None:
    """Time both versions in turn, and keep the ratios."""
    from benchmarks.harness import Report

    revision = os.environ.get("CALIBRANT_BENCH_BEFORE")
    if not revision:
        sys.exit("CALIBRANT_BENCH_BEFORE must name the revision to compare with, e.g. v0.1.0")
    report = Report("before")
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=SOURCE.parent, stdout=subprocess.PIPE, check=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
            packed.extractall(folder, filter="data")
        sources = (Path(folder) / "src", SOURCE)
        earlier, now = _reports(sources, Path(folder))
        report.ratio("evaluate --html, 1e5 rows, command line", now, revision, earlier, SLOWER)
        for name in calls():
            rounds = [in_turn(sources, name) for _ in range(ROUNDS)]
            earlier, now = (min(times) for times in zip(*rounds, strict=True))
            if max(earlier, now) < math.inf:
                report.ratio(name, now, revision, earlier, SLOWER)
    report.save()


if __name__ == "__main__":
    serve(sys.argv[1])
