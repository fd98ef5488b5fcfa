"""Smooth, lower distance, kernel and convolved errors next to the sort, a linear program and peers."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

import calibrant as cb
from benchmarks.harness import Report, forecast_data, peer, seconds, version

PUBLISHED = 9.1  # seconds at n = 10^5 of the testing paper's script under PyPy


def main() -> None:
    """Run and save."""
    report = Report("distances")
    _smooth(report)
    _lower(report)
    _lower_many(report)
    _kernel(report)
    _convolved(report)
    report.save()


def _smooth(report: Report) -> None:
    f = cb.Forecasts(*forecast_data(10**5))
    ours = seconds(lambda: cb.smooth_calibration_error(f))
    report.ratio(
        "smooth of sorted forecasts, 10^5 records", ours, "the authors' script under PyPy", PUBLISHED, 1 / 300
    )
    y, v = forecast_data(10**6)
    f = cb.Forecasts(y, v)
    sort = seconds(lambda: np.argsort(v))
    report.ratio(
        "smooth of sorted forecasts, 10^6 records",
        seconds(lambda: cb.smooth_calibration_error(f)),
        "np.argsort",
        sort,
        12,
        headline=True,
    )


def _lower(report: Report) -> None:
    f = cb.Forecasts(*forecast_data(32_768))
    found = cb.measure(f, "lower-distance")
    ours = seconds(lambda: cb.lower_distance(f), 3)
    report.figure("lower distance, m = 32,768: certified gap", found.upper - found.lower, "", 1e-6)
    small = cb.Forecasts(*forecast_data(4_096))
    check = cb.measure(small, "lower-distance")
    value, _ = _program(small)
    report.figure("lower distance, m = 4,096: distance to HiGHS", abs(value - check.value), "", 1e-5)
    _, theirs = _program(f)
    report.ratio(
        "lower distance, m = 32,768", ours, "HiGHS on the same program", theirs, 1 / 100, headline=True
    )


def _program(f: cb.Forecasts) -> tuple[float, float]:
    """The dual program of the lower distance over the levels, solved by HiGHS: value and seconds."""
    import time

    v, w, a = f.values, f.weights, f.outcomes
    m = len(v)
    index = np.arange(m - 1)
    rows, columns, entries, limits = [], [], [], []
    for layer in (0, 1):
        for sign in (1, -1):
            base = (2 * layer + (sign < 0)) * (m - 1)
            rows += [base + index, base + index]
            columns += [layer * m + index + 1, layer * m + index]
            entries += [np.full(m - 1, float(sign)), np.full(m - 1, -float(sign))]
            limits.append(np.diff(v))
    base = 4 * (m - 1)
    rows += [base + np.arange(m)] * 2
    columns += [np.arange(m), m + np.arange(m)]
    entries += [1 - v, v]
    limits.append(np.zeros(m))
    matrix = coo_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns)))).tocsr()
    start = time.perf_counter()
    found = linprog(
        -np.concatenate([w - a, a]), A_ub=matrix, b_ub=np.concatenate(limits), bounds=(None, None)
    )
    return -float(found.fun), time.perf_counter() - start


def _lower_many(report: Report) -> None:
    y, v = forecast_data(10**7)
    build = seconds(lambda: cb.Forecasts(y, v), 2)
    f = cb.Forecasts(y, v)
    found = cb.measure(f, "lower-distance", tolerance=1e-4)
    ours = seconds(lambda: cb.lower_distance(f, tolerance=1e-4), 2)
    report.figure("lower distance, 10^7 records: certified gap", found.upper - found.lower, "", 1e-4)
    report.figure("lower distance, 10^7 records, less 3 times building Forecasts", ours - 3 * build, "s", 0.5)


def _kernel(report: Report) -> None:
    y, v = forecast_data(10**6)
    f = cb.Forecasts(y, v)
    build = seconds(lambda: cb.Forecasts(y, v))
    report.ratio(
        "Laplace kernel, 10^6", seconds(lambda: cb.kernel_calibration_error(f)), "Forecasts", build, 3
    )
    y, v = forecast_data(10**4)
    if peer("netcal"):
        from netcal.metrics import MMCE

        small = cb.Forecasts(y, v)
        ours = seconds(lambda: cb.kernel_calibration_error(small))
        theirs = seconds(lambda: MMCE().measure(v, y.astype(int)), 1)
        report.ratio("Laplace kernel, 10^4", ours, f"MMCE of {version('netcal')}", theirs, headline=True)
    else:
        report.skipped("Laplace kernel, 10^4", "netcal is not installed")


def _convolved(report: Report) -> None:
    y, v = forecast_data(10**6)
    f = cb.Forecasts(y, v)
    ours = seconds(lambda: cb.convolved_calibration_error(f))
    sort = seconds(lambda: np.argsort(v))
    probcal, relplot = peer("probcal.metrics"), peer("relplot")
    if probcal:
        theirs = seconds(lambda: probcal.smooth_ece(y.astype(int), v), 3)
        report.ratio("convolved, 10^6", ours, f"{version('probcal')} and the sort", theirs + sort, 1)
    else:
        report.skipped("convolved, 10^6", "probcal is not installed")
    if relplot:
        theirs = seconds(lambda: relplot.smECE(v, y.astype(float)), 3)
        report.ratio("convolved, 10^6", ours, version("relplot"), theirs, headline=True)
        gap = abs(relplot.smECE(v, y.astype(float)) - cb.convolved_calibration_error(f))
        report.figure("convolved, 10^6: difference from relplot", gap, "")
    else:
        report.skipped("convolved, 10^6", "relplot is not installed")
