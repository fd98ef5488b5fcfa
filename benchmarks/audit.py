"""The audit next to MCGrad's MulticalibrationError, and a thousand random-path groups next to a sort."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, forecast_data, peak_memory, peer, seconds, version

# Each side in a process of its own: what a peer leaves of the heap would slow down the other.
SEGMENTS = """
import sys, time
from benchmarks.audit import _mcgrad, segments
import calibrant as cb
y, p, columns = segments({n}, {values})
if {theirs}:
    import mcgrad.metrics, pandas
    run = lambda: _mcgrad(y, p, columns, {values})
else:
    audit = cb.audit
    run = lambda: audit(y, p, groups=columns, depth=3, draws={draws}, seed=0, min_size=1)
for _ in range({calls}):
    start = time.perf_counter()
    run()
    print(time.perf_counter() - start)
"""

MEMORY = """
import calibrant as cb
from benchmarks.audit import segments
from benchmarks.harness import peak_memory
y, p, columns = segments(10**6, 3)
cb.audit(y, p, groups=columns, depth=3, draws=199, seed=0)
print(peak_memory() * 2**20 / 1e9)
"""


def main() -> None:
    """Run and save."""
    report = Report("audit")
    _raw_columns(report)
    _segments(report, 10**6, 3, 64)
    report.figure("memory of a whole process, 10^6 x 64 segments, 199 draws", _alone(MEMORY)[0], "GB", 0.6)
    _segments(report, 10**5, 10, 1331)
    _false_alarms(report)
    _paths(report)
    report.save()


def segments(n: int, values: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Tie-free forecasts and three columns: (values + 1)^3 segments of up to three columns, all occupied."""
    y, p = forecast_data(n)
    rng = np.random.default_rng(1)
    return y.astype(int), p, {name: rng.integers(0, values, n) for name in ("a", "b", "c")}


def _raw_columns(report: Report) -> None:
    """The peer given raw columns, which it collapses to three values each; ours is timed with doing that."""
    if not peer("mcgrad"):
        report.skipped("M of raw columns, 10^6 rows x 64 segments", "mcgrad is not installed")
        return
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    y, p = forecast_data(10**6)
    rng = np.random.default_rng(3)
    raw = {"a": rng.choice(list("abcdefgh"), 10**6), "b": rng.choice(list("uvwxyz"), 10**6)}
    frame = pd.DataFrame({"y": y.astype(int), "p": p, **raw, "x": rng.normal(size=10**6)})

    def theirs() -> float:
        columns = {"categorical_segment_columns": ["a", "b"], "numerical_segment_columns": ["x"]}
        return float(MulticalibrationError(frame, "y", "p", **columns).mce)

    def ours() -> float:
        groups = {name: _most_frequent(frame[name]) for name in ("a", "b")}
        groups["x"] = np.searchsorted(np.quantile(frame["x"], [1 / 3, 2 / 3]), frame["x"])
        return cb.audit(frame["y"], frame["p"], groups=groups, depth=3, draws=0).metric

    name = f"MulticalibrationError of {version('mcgrad')}"
    what = "M of raw columns, 10^6 rows x 64 segments"
    report.ratio(what, seconds(ours, 3), name, seconds(theirs, 2))
    report.figure(f"{what}: relative difference", abs(theirs() / ours() - 1), "", 1e-3)


def _most_frequent(column: Any) -> np.ndarray:
    """Code the two most frequent values 0 and 1, all others 2."""
    import pandas as pd

    codes, values = pd.factorize(column)
    place = np.full(len(values), 2)
    place[np.argsort(-np.bincount(codes))[:2]] = [0, 1]
    return place[codes]


def _segments(report: Report, n: int, values: int, count: int) -> None:
    y, p, columns = segments(n, values)
    found = cb.audit(y, p, groups=columns, depth=3, draws=0, min_size=1)
    report.figure(f"segments of {n:,} rows left untested", count - found.tested, "", 0)
    tested, _ = _best_and_first(n, values, draws=199)
    report.figure(f"audit with 199 simulated data sets, {n:,} rows x {count:,} segments", tested)
    what = f"audit without p-values, {n:,} rows x {count:,} segments"
    if not peer("mcgrad"):
        report.skipped(what, "mcgrad is not installed")
        return
    name = f"MulticalibrationError of {version('mcgrad')}"
    (ours, our_first), (theirs, their_first) = (
        _best_and_first(n, values, theirs=side) for side in (False, True)
    )
    report.ratio(what, ours, name, theirs, 1 / 10, headline=n == 10**6)
    report.ratio(f"{what}, first call of a process, imports aside", our_first, name, their_first)
    limit = 1.0 if n == 10**6 else None
    report.ratio(f"audit with p-values, {n:,} rows x {count:,} segments", tested, name, theirs, limit)
    metric, kept = _mcgrad(y, p, columns, values)
    report.figure(
        f"relative difference of M, {n:,} rows (float32 there)", abs(metric / found.metric - 1), "", 1e-3
    )
    report.figure(f"segments of {n:,} rows that MCGrad leaves out", count - kept, "")


def _best_and_first(n: int, values: int, draws: int = 0, theirs: bool = False) -> tuple[float, float]:
    """Return the best of all later calls and the best of all first calls in three processes."""
    script = SEGMENTS.format(n=n, values=values, draws=draws, theirs=theirs, calls=4)
    first, *later = zip(*(_alone(script) for _ in range(3)), strict=True)
    return min(min(calls) for calls in later), min(first)


def _mcgrad(y: np.ndarray, p: np.ndarray, columns: dict[str, np.ndarray], values: int) -> tuple[float, int]:
    """M by the peer with every value kept and its own limit of segments lifted; and how many it tested."""
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame({"y": y, "p": p, **columns})
    metric = MulticalibrationError(
        frame,
        "y",
        "p",
        categorical_segment_columns=list(columns),
        max_values_per_segment_feature=values,
        min_samples_per_segment=1,
        max_n_segments=None,
    )
    return float(metric.mce), int(metric.total_number_segments)


def _alone(script: str) -> list[float]:
    """Return the numbers that a process prints that does nothing else."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def _false_alarms(report: Report, data_sets: int = 400) -> None:
    """Share of calibrated data sets, every other one with tied predictions, that are called miscalibrated."""
    ours = theirs = 0
    for seed in range(data_sets):
        rng = np.random.default_rng(seed)
        p = rng.choice([0.05, 0.2, 0.5, 0.9], 1500) if seed % 2 else rng.beta(0.6, 2.0, 1500)
        y = (rng.random(1500) < p).astype(int)
        columns = {name: rng.integers(0, 3, 1500) for name in ("a", "b", "c")}
        ours += cb.audit(y, p, groups=columns, depth=3, seed=seed).pvalue <= 0.05
        if peer("mcgrad"):
            theirs += _mcgrad_pvalue(y, p, columns) <= 0.05
    report.figure(
        f"false alarms in {data_sets} calibrated data sets x 64 segments", ours, "", data_sets // 20
    )
    if peer("mcgrad"):
        report.figure(f"the same by {version('mcgrad')}", theirs, "")


def _mcgrad_pvalue(y: np.ndarray, p: np.ndarray, columns: dict[str, np.ndarray]) -> float:
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame({"y": y, "p": p, **columns})
    return float(MulticalibrationError(frame, "y", "p", categorical_segment_columns=list(columns)).mce_pvalue)


def _paths(report: Report) -> None:
    y, p = forecast_data(10**6)
    rng = np.random.default_rng(2)
    covariates = {f"x{j}": rng.random(10**6) for j in range(25)}
    covariates |= {f"k{j}": rng.integers(0, 40, 10**6) for j in range(25)}
    sort = seconds(lambda: np.argsort(p))

    def run(draws: int) -> cb.Audit:
        return cb.audit(y, p, covariates=covariates, draws=draws, seed=0)

    assert run(0).tested == 1001
    what = "1,000 random-path subpopulations, 10^6 rows x 50 covariates"
    report.ratio(what, seconds(lambda: run(0), 1), "np.argsort", sort, 300)
    report.ratio(f"{what}, with p-values", seconds(lambda: run(199), 1), "np.argsort", sort)
    report.figure("memory after all of this", peak_memory() * 2**20 / 1e9, "GB")


if __name__ == "__main__":
    main()
