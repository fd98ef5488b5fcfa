"""No speed lost: the measures and the functions that people call most, beside an earlier revision.

    CALIBRANT_BENCH_BEFORE=REVISION python -m benchmarks before

Each call runs in processes of its own, of both versions in turn, on the same data: what ran before it in the
same process decides the memory that a call gets, and with it the time of a millisecond. The best time of
each version counts. What the earlier revision did not have is left out.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 2
REPEATS = 9
ENOUGH = 1.0  # seconds that a call is given per process
SLOWER = 1.25  # below that, this is noise of the machine
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
    weight = rng.random(10**6) + 0.1
    known: dict[str, Callable[[], Any]] = {
        f"{name}, 1e5": lambda row=row: row.function(y, p, **dict(row.options))
        for name, row in cb.measures().items()
        if name != "upper-distance"  # its search goes on until its time is up
    }
    return known | {
        "smooth, 1e6": lambda: cb.smooth_calibration_error(many_y, many_p),
        "Forecasts, 1e6": lambda: cb.Forecasts(many_y, many_p),
        "Forecasts, weighted, 1e6": lambda: cb.Forecasts(many_y, many_p, weight),
        "calibration_test, 1e5": lambda: cb.calibration_test(y, p, seed=1),
        "confidence_interval, brier, 5e3": lambda: cb.confidence_interval(
            few_y, few_p, measure="brier", seed=1
        ),
        "compare, 5e3": lambda: cb.compare(few_y, {"a": few_p, "b": few_p**1.1}, seed=1),
        "audit, 1e5": lambda: cb.audit(y, p, groups=groups, seed=1),
        "evaluate, 1e5": lambda: cb.evaluate(y, p, seed=1).to_dict(),
        "Sketch, 1e6": lambda: cb.Sketch.from_arrays(many_y, many_p),
    }


def seconds(name: str) -> float | None:
    """Return the best time of a call in the version on the path; None where it does not work there."""
    call = calls()[name]
    try:
        call()
    except Exception:  # the earlier version called it otherwise, or did not have it
        return None
    spent: list[float] = []
    while len(spent) < REPEATS and sum(spent) < ENOUGH:
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def measured(source: Path, name: str) -> float | None:
    """Return the time of a call in the version below a folder, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", __file__, name],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return None if done.returncode else json.loads(done.stdout)


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
        for name in calls():
            rounds = [[measured(source, name) for source in sources] for _ in range(ROUNDS)]
            if any(time is None for pair in rounds for time in pair):
                continue
            earlier, now = (min(times) for times in zip(*rounds, strict=True))
            report.ratio(name, now, revision, earlier, SLOWER)
    report.save()


if __name__ == "__main__":
    json.dump(seconds(sys.argv[1]), sys.stdout)
