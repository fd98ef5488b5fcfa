"""No speed lost: the measures and the functions that people call most, beside an earlier revision.

    CALIBRANT_BENCH_BEFORE=REVISION python -m benchmarks before

Both versions run in processes of their own, in turn, on the same data; the best time of each counts. What
the earlier revision did not have is left out.
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

ROUNDS = 3
REPEATS = 3
ENOUGH = 3.0  # seconds that a function is given per round
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
        "confidence_interval, brier, 5e3": lambda: cb.confidence_interval(few_y, few_p, "brier", seed=1),
        "compare, 5e3": lambda: cb.compare(few_y, {"a": few_p, "b": few_p**1.1}, seed=1),
        "audit, 1e5": lambda: cb.audit(y, p, groups=groups, seed=1),
        "evaluate, 1e5": lambda: cb.evaluate(y, p, seed=1).to_dict(),
        "Sketch, 1e6": lambda: cb.Sketch.from_arrays(many_y, many_p),
    }


def timings() -> dict[str, float]:
    """Return the best seconds of every call that works in the version on the path."""
    best = {}
    for name, call in calls().items():
        try:
            call()
        except Exception:  # the earlier version called it otherwise, or did not have it
            continue
        spent: list[float] = []
        while len(spent) < REPEATS and sum(spent) < ENOUGH:
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
        best[name] = min(spent)
    return best


def measured(source: Path) -> dict[str, float]:
    """Return the timings of the version below a folder, from a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", __file__],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def best_of(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the best time of every call over the rounds."""
    return {name: min(one[name] for one in rounds) for name in rounds[0]}


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
        rounds = [(measured(Path(folder) / "src"), measured(SOURCE)) for _ in range(ROUNDS)]
    earlier, now = (best_of([pair[k] for pair in rounds]) for k in (0, 1))
    for name in earlier:
        if name in now:
            report.ratio(name, now[name], revision, earlier[name], SLOWER)
    report.save()


if __name__ == "__main__":
    json.dump(timings(), sys.stdout)
