"""How long a repair takes: with covariates next to one LightGBM fit of the same rows, and with ten classes.

Fit and assessment together, as a user waits for them. Times are processor seconds on one thread, so that
whatever else the machine does counts for little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

import calibrant as cb
from benchmarks.harness import Report, peer, version

ROWS = (10**5, 10**6)
TREES = 100
CLASSES, CLASS_ROWS = 10, 5_000


def processor_seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long an action kept the processor busy, and what it returned."""
    start = time.process_time()
    done = action()
    return time.process_time() - start, done


def people(n: int, seed: int = 0) -> tuple[Any, Any, dict[str, Any]]:
    """Return outcomes, predictions and three covariates; one category is rated too low."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 3.0, n)
    job = rng.choice(["clerk", "farmer", "nurse", "smith"], n)
    columns = {"job": job, "region": rng.choice(list("abcdefgh"), n), "age": rng.integers(18, 90, n)}
    return (rng.random(n) < expit(0.8 * logit(p) + 0.4 * (job == "farmer"))).astype(int), p, columns


def lightgbm_fit(y: Any, p: Any, columns: dict[str, Any]) -> None:
    """Fit trees to the same rows, on one thread."""
    import lightgbm

    codes = [np.unique(column, return_inverse=True)[1] for column in columns.values()]
    data = lightgbm.Dataset(np.column_stack([p, *codes]), y)
    lightgbm.train({"objective": "binary", "verbosity": -1, "num_threads": 1}, data, TREES)


def covariates(report: Report, n: int) -> None:
    """Time `auto` with covariates; up to 20,000 of the rows are assessed."""
    y, p, columns = people(n)
    fit, fitted = processor_seconds(lambda: cb.recalibrate(y, p, covariates=columns))
    assess, found = processor_seconds(fitted.assess)
    what = f"auto with three covariates, n = {n:,}"
    report.figure(f"{what}: fit", fit)
    report.figure(f"{what}: assessment ({found.n:,} rows, {fitted.chosen} {found.verdict})", assess)
    if peer("lightgbm") is None:
        report.skipped(what, "LightGBM is not installed")
        return
    theirs = min(processor_seconds(lambda: lightgbm_fit(y, p, columns))[0] for _ in range(3))
    yardstick = f"{version('lightgbm')}, {TREES} trees"
    report.ratio(f"{what}: fit and assessment", fit + assess, yardstick, theirs, 20 if n == ROWS[0] else None)


def classes(report: Report) -> None:
    """Time `auto` for ten classes."""
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 1.5, (CLASS_ROWS, CLASSES))
    table = softmax(1.6 * truth + rng.normal(0, 0.3, CLASSES), axis=1)
    labels = (rng.random((CLASS_ROWS, 1)) > np.cumsum(softmax(truth, axis=1), axis=1)).sum(axis=1)
    fit, fitted = processor_seconds(lambda: cb.recalibrate(np.minimum(labels, CLASSES - 1), table))
    assess, _ = processor_seconds(fitted.assess)
    report.figure(f"auto, {CLASSES} classes, n = {CLASS_ROWS:,}: fit", fit, at_most=5)
    report.figure(f"auto, {CLASSES} classes, n = {CLASS_ROWS:,}: assessment", assess, at_most=15)


def main(*rows: int) -> None:
    """Measure, print and keep the results."""
    report = Report("waiting")
    covariates(Report("warm-up"), 2_000)
    for n in rows or ROWS:
        covariates(report, n)
    classes(report)
    report.save()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
