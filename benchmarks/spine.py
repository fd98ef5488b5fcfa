"""Building Forecasts, the simple measures next to peers, and what starting up costs."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, forecast_data, peer, seconds, version


def main() -> None:
    """Run and save."""
    report = Report("spine")
    _build(report)
    _binned(report)
    _kuiper(report)
    _start(report)
    report.save()


def _build(report: Report) -> None:
    y, v = forecast_data(10**7)
    sort = seconds(lambda: np.sort(v), 3)
    report.ratio("Forecasts of 10^7 records", seconds(lambda: cb.Forecasts(y, v), 3), "np.sort", sort, 6)
    tracemalloc.start()  # numpy reports its arrays to tracemalloc
    forecasts = cb.Forecasts(y, v)
    peak = tracemalloc.get_traced_memory()[1] / (v.nbytes + y.nbytes)
    report.figure("peak memory while building Forecasts, 10^7 records", peak, "times the input", 6)
    assert len(forecasts.curve) == forecasts.levels + 1
    kept = tracemalloc.get_traced_memory()[0] / (v.nbytes + y.nbytes)
    tracemalloc.stop()
    report.figure("memory kept by Forecasts and its curve, 10^7 records", kept, "times the input", 6)


def _binned(report: Report) -> None:
    y, v = forecast_data(10**6)
    what = "binned error, 15 bins, 10^6 raw records"
    ours = seconds(lambda: cb.binned_calibration_error(y, v))
    torch, torchmetrics = peer("torch"), peer("torchmetrics")
    if torch and torchmetrics:
        from torchmetrics.functional.classification import binary_calibration_error

        preds, target = torch.tensor(v), torch.tensor(y.astype(int))
        theirs = seconds(lambda: binary_calibration_error(preds, target, n_bins=15))
        report.ratio(what, ours, version("torchmetrics"), theirs, 1, headline=True)
    else:
        report.skipped(what, "torchmetrics is not installed")
    if peer("netcal"):
        from netcal.metrics import ECE

        report.ratio(what, ours, version("netcal"), seconds(lambda: ECE(15).measure(v, y.astype(int))), 1)
    else:
        report.skipped(what, "netcal is not installed")
    if peer("mapie"):
        from mapie.metrics.calibration import expected_calibration_error

        theirs = seconds(lambda: expected_calibration_error(y.astype(int), v, num_bins=15), 3)
        report.ratio(what, ours, version("mapie"), theirs, 1)
    else:
        report.skipped(what, "MAPIE is not installed")
    what = "binned error, 15 bins, Forecasts of 10^6 records"
    relplot = peer("relplot.metrics")
    if relplot:
        f = cb.Forecasts(y, v)
        ours = seconds(lambda: cb.binned_calibration_error(f))
        labels = y.astype(float)
        theirs = seconds(lambda: relplot.binnedECE(v, labels, nbins=15))
        report.ratio(what, ours, version("relplot"), theirs, 1)
    else:
        report.skipped(what, "relplot is not installed")


def _kuiper(report: Report) -> None:
    y, v = forecast_data(10**6)
    what = "Kuiper error, 10^6 raw records"
    metrics = peer("mcgrad.metrics")
    if metrics is None:
        report.skipped(what, "MCGrad is not installed")
        return
    ours, labels = seconds(lambda: cb.kuiper_error(y, v)), y.astype(int)
    theirs = seconds(lambda: metrics.ecce(labels, v))
    report.ratio(what, ours, version("mcgrad"), theirs, 1, headline=True)


def _start(report: Report) -> None:
    numpy = _import_time("import numpy")
    report.figure("import calibrant, beyond numpy", _import_time("import numpy, calibrant") - numpy, "s", 0.2)
    python = _import_time("pass")
    report.figure(
        "calibrant --version, beyond Python", _import_time("import calibrant.cli.main") - python, "s", 0.3
    )


def _import_time(code: str) -> float:
    timed = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    return min(float(_child(timed)) for _ in range(5))


def _child(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
