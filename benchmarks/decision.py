"""Decision loss next to building Forecasts, on a million levels of several kinds, and next to HiGHS."""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy.optimize import linprog

import calibrant as cb
from benchmarks.harness import Report, seconds

LEVELS = 10**6


def main() -> None:
    """Run and save."""
    report = Report("decision")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.LevelSetWarning)  # single records are timed as well
        _levels(report)
        _program(report)
    report.save()


def _levels(report: Report) -> None:
    rng = np.random.default_rng(0)
    v = rng.random(LEVELS)
    single = rng.random(LEVELS) < v
    cases = {
        "five records each": ((rng.random((5, LEVELS)) < v).ravel(), np.tile(v, 5), None),
        "known probabilities near v": (np.clip(v + rng.normal(0, 0.1, LEVELS), 0, 1), v, None),
        "known probabilities anywhere": (rng.random(LEVELS), v, None),
        "weighted records": (single, v, rng.random(LEVELS)),
        "one record each": (single, v, None),
    }
    for kind, (y, p, w) in cases.items():
        build = seconds(lambda y=y, p=p, w=w: cb.Forecasts(y, p, sample_weight=w))
        forecasts = cb.Forecasts(y, p, sample_weight=w)
        assert forecasts.levels == LEVELS
        ours = seconds(lambda f=forecasts: cb.decision_loss(f))
        report.ratio(f"decision loss, 10^6 levels, {kind}", ours, "building Forecasts", build, 3)


def _program(report: Report) -> None:
    """The program over all payoff tables, at a size that HiGHS can take: every belief against every other."""
    rng = np.random.default_rng(0)
    f = cb.Forecasts(rng.random(60), rng.random(60))
    rates = f.outcomes / f.weights
    beliefs = np.union1d(f.values, rates)
    k = len(beliefs)
    gain = np.zeros((2, k))
    for report_of, sign in ((rates, 1.0), (f.values, -1.0)):
        place = np.searchsorted(beliefs, report_of)
        gain += sign * np.stack(
            (np.bincount(place, f.weights - f.outcomes, k), np.bincount(place, f.outcomes, k))
        )
    own, other = (x.ravel() for x in np.meshgrid(np.arange(k), np.arange(k), indexing="ij"))
    rows = np.zeros((k * k, 2 * k))
    for column, sign in ((other, 1.0), (own, -1.0)):
        np.add.at(rows, (np.arange(k * k), column), sign * (1 - beliefs[own]))
        np.add.at(rows, (np.arange(k * k), k + column), sign * beliefs[own])
    start = time.perf_counter()
    found = linprog(-gain.ravel(), A_ub=rows[own != other], b_ub=np.zeros(k * (k - 1)), bounds=(0, 1))
    theirs = time.perf_counter() - start
    ours = seconds(lambda: cb.decision_loss(f))
    gap = abs(-float(found.fun) - cb.decision_loss(f))
    report.figure("decision loss, 60 levels: distance to the program over all payoffs", gap, "", 1e-8)
    report.ratio("decision loss, 60 levels", ours, "HiGHS on the program over all payoffs", theirs)
