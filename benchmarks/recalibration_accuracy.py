"""Recalibration: what each method gains on held-out records, next to other packages.

Real tasks are read from a folder next to the repo (or the one that CALIBRANT_DATA names); where it is absent,
three generated tasks take their place. Figures are changes of log loss against leaving predictions alone, in
thousandths of a nat (clipped at 1e-6); harm is a loss of more than half of one.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import RESULTS, Report, machine, peer

DATA = Path(os.environ.get("CALIBRANT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
REPEATS = {100: 21, 1_000: 21, 10_000: 14}  # splits per task: at least 300, 300 and 100 fits per method
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


def rounded_tasks() -> Iterator[tuple[str, Any, Any]]:
    """Human and rounded predictions, some of them exactly 0 or 1."""
    import duckdb

    tasks = {name: (p, y) for name, p, y in real_tasks()}
    for name, step in (
        ("support2 prg2m", None),
        ("support2 prg6m", None),
        ("support2 surv6m", 0.1),
        ("adult p_lr", 0.05),
        ("538 games", 0.1),
    ):
        p, y = tasks[name]
        label = name if step is None else f"{name}, rounded to {step:g}"
        yield label, p if step is None else np.round(np.round(p / step) * step, 12), y
    file = DATA / "fivethirtyeight_governors.parquet"
    query = f"SELECT p, CAST(y AS DOUBLE) AS y FROM read_parquet('{file}')"
    table = duckdb.connect().execute(query).fetchnumpy()
    yield "538 governors, rounded to 0.1", np.round(table["p"].astype(float), 1), table["y"].astype(float)


def rounded(n: int = 100, splits: int = 16) -> None:
    """Measure `auto` on rounded predictions: the change per task, the best peer's, and how often it harms."""
    report, others = Report("rounded_scores"), peers()
    for task, p, y in rounded_tasks():
        usable = np.isfinite(p) & np.isfinite(y)
        cases = list(splits_of(p[usable], y[usable], n, splits))

        def changes(fit: Fit, cases: list[Any] = cases) -> Any:
            return 1e3 * np.array([change_of_loss(fit, train, test) for _, train, test in cases])

        auto = changes(ours("auto"))
        theirs = {name: float(np.nanmean(changes(fit))) for name, fit in others.items()}
        best = min(theirs, key=lambda name: theirs[name])
        report.figure(f"{task}, n = {n}: auto", float(auto.mean()), "mnat")
        report.figure(f"{task}, n = {n}: auto minus {best}", float(auto.mean()) - theirs[best], "mnat", 10)
        report.figure(f"{task}, n = {n}: fits of auto that harm", float(np.mean(auto > 1e3 * HARM)), "share")
    report.save()


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
    if probmetrics := peer("probmetrics.calibrators"):
        for method in ("affine-scaling", "quadratic-scaling", "sms"):
            found[f"probmetrics {method}"] = _probmetrics(partial(probmetrics.get_calibrator, method))
        regularized = probmetrics.RegularizedQuadraticScalingCalibrator
        found["probmetrics regularized quadratic"] = _probmetrics(regularized)
    return found


def _probmetrics(calibrator: Callable[[], Any]) -> Fit:
    def fit(p: Any, y: Any) -> Callable[[Any], Any]:
        model = calibrator()
        model.fit(np.column_stack([1 - p, p]), y.astype(int))
        return lambda new: np.asarray(model.predict_proba(np.column_stack([1 - new, new])))[:, 1]

    return fit


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


class Kept:
    """What was measured so far, in a file of lines: a run that was stopped goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known = {tuple(key): change for key, change in map(json.loads, lines)}

    def change(self, key: tuple[Any, ...], measure: Callable[[], float]) -> float:
        """Return a figure that is known, or measure and keep it."""
        if key not in self.known:
            self.known[key] = measure()
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def change_of_loss(fit: Fit, train: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    """Change of the log loss on held-out records; NaN where a package refuses these records."""
    (p, y), (new, truth) = train, test
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return log_loss(truth, np.asarray(fit(p, y)(new))) - log_loss(truth, new)
    except Exception:  # the packages of others raise whatever they like
        return float("nan")


def splits_of(p: Any, y: Any, n: int, splits: int) -> Iterator[tuple[int, Any, Any]]:
    """Random splits that have both outcomes: n records to fit, and up to TEST others."""
    for split in range(splits):
        order = np.random.default_rng(1000 * split + 7).permutation(len(p))
        train, test = order[:n], order[n : n + TEST]
        if y[train].min() < y[train].max():
            yield split, (p[train], y[train]), (p[test], y[test])


def table(
    tasks: list[tuple[str, Any, Any]], n: int, splits: int, methods: dict[str, Fit], kept: Kept
) -> dict[str, Any]:
    """Mean change per method over tasks, how often it harms with Wilson's upper limit, and how many fits."""
    rows: dict[str, list[Any]] = {name: [] for name in methods}
    for task, p, y in tasks:
        usable = np.isfinite(p) & np.isfinite(y)
        if usable.sum() < n + 1_000:
            continue
        cases = list(splits_of(p[usable], y[usable], n, splits))
        for name, fit in methods.items():
            changes = [
                kept.change((n, task, split, name), lambda: change_of_loss(fit, train, test))  # noqa: B023
                for split, train, test in cases
            ]
            rows[name].append(np.array(changes))
    return {name: _summary(parts, rows["auto"]) for name, parts in rows.items()}


def _summary(parts: list[Any], auto: list[Any]) -> dict[str, float]:
    """Figures of one method; `behind_auto` is its mean minus that of auto, on the fits that both made."""
    every = np.concatenate(parts)
    known = every[np.isfinite(every)]
    harmed, fits = int((known > HARM).sum()), len(known)
    change, error = _mean(parts)
    behind, doubt = _mean([part - other for part, other in zip(parts, auto, strict=True)])
    return {
        "change": change,
        "error": error,
        "harm": harmed / fits,
        "harm_at_most": wilson(harmed, fits),
        "fits": fits,
        "behind_auto": behind,
        "behind_auto_error": doubt,
    }


def _mean(parts: list[Any]) -> tuple[float, float]:
    """Mean over tasks of the mean over splits, in thousandths, and its standard error for these tasks."""
    known = [part[np.isfinite(part)] for part in parts]
    known = [part for part in known if len(part) > 1]
    squares = sum(float(np.var(part, ddof=1)) / len(part) for part in known)
    return float(np.mean([part.mean() for part in known])) * 1e3, float(np.sqrt(squares)) / len(known) * 1e3


def wilson(hits: int, trials: int, z: float = 1.96) -> float:
    """Upper limit of a share (Wilson 1927)."""
    share, extra = hits / trials, z * z / trials
    reach = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return float((share + extra / 2 + reach) / (1 + extra))


def main(repeats: dict[int, int] | None = None) -> None:
    """Measure all methods on the tasks as they are, then `auto` on rounded predictions."""
    accuracy(repeats)
    if DATA.is_dir():
        rounded()


def accuracy(repeats: dict[int, int] | None = None) -> None:
    """Measure what methods gain, print and keep the results."""
    methods = {**METHODS, **peers()}
    tasks = list(real_tasks()) if DATA.is_dir() else list(generated_tasks())
    found: dict[str, Any] = {"machine": machine(), "tasks": [name for name, _, _ in tasks], "tables": {}}
    kept = Kept(RESULTS / "recalibration_fits.jsonl")
    for n, splits in (repeats or REPEATS).items():
        found["tables"][str(n)] = table(tasks, n, splits, methods, kept)
        print(f"n = {n:,}")
        for name, row in found["tables"][str(n)].items():
            print(
                f"  {name:<36}{row['change']:+9.1f}  harm {row['harm']:6.1%}  fits {row['fits']}", flush=True
            )
        (RESULTS / "recalibration_accuracy.json").write_text(json.dumps(found, indent=1) + "\n")
    kept.path.unlink()


if __name__ == "__main__":
    main()
