"""Recalibration: what each method gains on held-out records, and how fast it fits.

Real tasks are read from a folder beside the repo (or the one that CALIBRANT_DATA names); where it is absent,
three generated tasks take their place. Figures are changes of log loss against leaving predictions alone, in
thousandths of a nat (clipped at 1e-6); harm is a loss of more than half of one.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import RESULTS, Report, machine, peer, seconds

DATA = Path(os.environ.get("CALIBRANT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
REPEATS = {100: 20, 1_000: 20, 10_000: 7}  # splits per task: at least 300, 300 and 100 fits a method
CENTERED = "probcal CenteredIsotonicCalibrator"
HARM = 5e-4
TEST = 8_000
Fit = Callable[[Any, Any], Callable[[Any], Any]]  # predictions and outcomes to a map


def real_tasks() -> Iterator[tuple[str, Any, Any]]:
    """Predictions and outcomes of fifteen real tasks."""
    import duckdb

    def columns(file: str, *names: str) -> list[Any]:
        quoted = ", ".join(f'CAST("{name}" AS DOUBLE) AS "{name}"' for name in names)
        query = f"SELECT {quoted} FROM read_parquet('{DATA / file}')"
        table = duckdb.connect().execute(query).fetchnumpy()
        return [np.ma.filled(table[name].astype(float), np.nan) for name in names]

    for label, file in (("adult", "adult_predictions"), ("acs", "acs2018_govworkers_predictions")):
        for model in ("p_lr", "p_dt", "p_lgbm"):
            yield f"{label} {model}", *columns(f"{file}.parquet", model, "y")
    for score, outcome in (
        ("surv2m", "alive2m"),
        ("surv6m", "alive6m"),
        ("prg2m", "alive2m"),
        ("prg6m", "alive6m"),
    ):
        yield f"support2 {score}", *columns("support2_survival.parquet", score, outcome)
    p, y = columns("fivethirtyeight_games.parquet", "p", "y")
    yield "538 games", p[y != 0.5], y[y != 0.5]
    yield "nhanes p_lgbm", *columns("nhanes2_weighted_predictions.parquet", "p_lgbm", "y")
    yield "cifar100 top label", *columns("toplabel_resnet110_cifar100.parquet", "confidence", "correct")
    yield "imagenet top label", *columns("toplabel_imagenet_resnet34.parquet", "confidence", "correct")
    p, label = columns("softmax_lenet5_cifar10.parquet", "p3", "label")
    yield "cifar10 cat", p, (label == 3).astype(float)


def generated_tasks(n: int = 12_000, seed: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Three tasks that ship: overconfident, few tied levels, and already calibrated predictions."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(1.2, 1.8, n)
    outcome = (rng.random(n) < truth).astype(float)
    logit = np.log(truth / (1 - truth))
    yield "overconfident", 1 / (1 + np.exp(-1.8 * logit)), outcome
    yield "tied levels", np.round(truth**1.5, 1), outcome
    yield "calibrated", truth, outcome


def ours(method: str, **options: Any) -> Fit:
    """One of calibrant's methods."""

    def fit(p: Any, y: Any) -> Callable[[Any], Any]:
        return cb.recalibrate(y, p, method=method, seed=0, **options).predict

    return fit


def peers() -> dict[str, Fit]:
    """Methods of other packages, as far as they are installed."""
    found: dict[str, Fit] = {}
    if (calibration := peer("sklearn.calibration")) and (isotonic := peer("sklearn.isotonic")):
        found["scikit-learn sigmoid"] = lambda p, y: calibration._SigmoidCalibration().fit(p, y).predict
        found["scikit-learn isotonic"] = lambda p, y: (
            isotonic.IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(p, y).predict
        )
    if probcal := peer("probcal"):
        for name in ("PlattCalibrator", "CenteredIsotonicCalibrator", "CalibratorSelector"):
            found[f"probcal {name}"] = _probcal(getattr(probcal, name))
    if betacal := peer("betacal"):
        found["betacal"] = lambda p, y: betacal.BetaCalibration("abm").fit(p.reshape(-1, 1), y).predict
    if venn := peer("venn_abers"):
        found["venn-abers (package)"] = _venn(venn)
    return found


def _probcal(kind: Any) -> Fit:
    def fit(p: Any, y: Any) -> Callable[[Any], Any]:
        model = kind()
        model.fit(p, y)
        return model.predict_proba

    return fit


def _venn(venn: Any) -> Fit:
    def fit(p: Any, y: Any) -> Callable[[Any], Any]:
        model = venn.VennAbers()
        model.fit(np.column_stack([1 - p, p]), y)
        return lambda new: model.predict_proba(np.column_stack([1 - new, new]))[0][:, 1]

    return fit


METHODS: dict[str, Fit] = {
    "as they are": ours("identity"),
    "auto": ours("auto"),
    "platt": ours("platt"),
    "platt, not shrunk": ours("platt", shrink=None),
    "beta": ours("beta"),
    "spline": ours("spline"),
    "centered-isotonic": ours("centered-isotonic"),
    "venn-abers": ours("venn-abers"),
    "bounded-slope, kt ends": ours("bounded-slope", ends="kt"),
    "isotonic": ours("isotonic"),
    "histogram": ours("histogram"),
}


def log_loss(y: Any, q: Any) -> float:
    """Mean log loss, predictions held within 1e-6 of 0 and 1."""
    safe = np.clip(q, 1e-6, 1 - 1e-6)
    return float(-np.mean(y * np.log(safe) + (1 - y) * np.log1p(-safe)))


def gains(p: Any, y: Any, n: int, split: int, methods: dict[str, Fit]) -> dict[str, float] | None:
    """Change of the log loss by each method on one random split; None where a split has one outcome."""
    order = np.random.default_rng(1000 * split + 7).permutation(len(p))
    train, test = order[:n], order[n : n + TEST]
    if y[train].min() == y[train].max():
        return None
    before = log_loss(y[test], p[test])
    found = {}
    for name, fit in methods.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = log_loss(y[test], np.asarray(fit(p[train], y[train])(p[test]))) - before
        except Exception:  # a peer that refuses this sample has no figure for it
            found[name] = float("nan")
    return found


def table(tasks: list[tuple[str, Any, Any]], n: int, splits: int, methods: dict[str, Fit]) -> dict[str, Any]:
    """Mean change per method over tasks, how often it harms with Wilson's upper limit, and how many fits."""
    rows: dict[str, list[list[float]]] = {name: [] for name in methods}
    for _, p, y in tasks:
        kept = np.isfinite(p) & np.isfinite(y)
        p_, y_ = p[kept], y[kept]
        if len(p_) < n + 1_000:
            continue
        changes = [c for c in (gains(p_, y_, n, k, methods) for k in range(splits)) if c is not None]
        for name in methods:
            rows[name].append([change[name] for change in changes])
    return {name: _summary(parts) for name, parts in rows.items()}


def _summary(parts: list[list[float]]) -> dict[str, float]:
    every = np.array([change for part in parts for change in part])
    known = every[np.isfinite(every)]
    harmed, fits = int((known > HARM).sum()), len(known)
    mean = float(np.mean([np.nanmean(part) for part in parts])) * 1e3
    return {"change": mean, "harm": harmed / fits, "harm_at_most": wilson(harmed, fits), "fits": fits}


def wilson(hits: int, trials: int, z: float = 1.96) -> float:
    """Upper limit of a share (Wilson 1927)."""
    share, extra = hits / trials, z * z / trials
    reach = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return float((share + extra / 2 + reach) / (1 + extra))


def speed(report: Report, n: int = 10**6) -> None:
    """Times of fits beside other packages, in the same run."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p**1.3).astype(float)
    few = slice(0, n // 10)
    others = peers()
    pairs = [
        ("platt, clip fixed", ours("platt", clip=1e-7), "scikit-learn sigmoid", slice(None), 0.3),
        ("platt", ours("platt"), "scikit-learn sigmoid", slice(None), None),
        ("isotonic", ours("isotonic"), "scikit-learn isotonic", slice(None), 0.6),
        (
            "centered-isotonic",
            ours("centered-isotonic"),
            "probcal CenteredIsotonicCalibrator",
            slice(None),
            0.1,
        ),
        ("bounded-slope", ours("bounded-slope"), "scikit-learn isotonic", slice(None), 2.5),
        ("venn-abers, fit and predict", ours("venn-abers"), "venn-abers (package)", few, 0.05),
    ]
    for what, mine, yardstick, part, limit in pairs:
        label = f"{what}, n = {len(p[part]):,}"
        if yardstick not in others:
            report.skipped(label, f"{yardstick} is not installed")
            continue
        x, r = p[part], y[part]
        both = [seconds(lambda f=f: f(x, r)(x), 3) for f in (mine, others[yardstick])]  # noqa: B023
        report.ratio(label, both[0], yardstick, both[1], limit)
    report.figure(f"spline, n = {n:,}", seconds(lambda: ours("spline")(p, y), 3), at_most=1.5)


def main(repeats: dict[int, int] | None = None) -> None:
    """Measure, print and keep the results."""
    methods = {**METHODS, **peers()}
    tasks = list(real_tasks()) if DATA.is_dir() else list(generated_tasks())
    found: dict[str, Any] = {"machine": machine(), "tasks": [name for name, _, _ in tasks], "tables": {}}
    for n, splits in (repeats or REPEATS).items():
        found["tables"][str(n)] = table(tasks, n, splits, methods)
        print(f"n = {n:,}")
        for name, row in found["tables"][str(n)].items():
            print(
                f"  {name:<36}{row['change']:+9.1f}  harm {row['harm']:6.1%}  fits {row['fits']}", flush=True
            )
        (RESULTS / "recalibration_accuracy.json").write_text(json.dumps(found, indent=1) + "\n")
    report = Report("recalibration")
    speed(report)
    report.save()


if __name__ == "__main__":
    main()
