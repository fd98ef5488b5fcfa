"""Repair by covariates next to MCGrad: log loss, M / sigma and time on held-out halves, three splits.

The data lie next to the repo (ACS 2018 and adult); without them there is nothing to measure. Times are
processor seconds of fitting and predicting on one thread, assessments aside on both sides, so that whatever
else the machine does counts for little.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import RESULTS, Report, peer, version

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SPLITS = 3
SAFE = 1e-6
SMALL = (500, 2_000)
LARGE = ("identity", "spline", "hierarchical", "patch", "boost")
SMALL_METHODS = ("identity", "platt", "spline", "hierarchical", "boost")
MEANS = ["log_loss", "ratio", "seconds"]
TASKS = {
    "adult": ("adult_predictions.parquet", ("row", "y", "fnlwgt")),
    "acs": ("acs2018_govworkers_predictions.parquet", ("row", "y")),
}
Repair = Callable[[Any, np.ndarray, np.ndarray, Any, np.ndarray], np.ndarray]


def tasks(folder: Path = DATA) -> Iterator[tuple[str, Any, np.ndarray, np.ndarray]]:
    """Yield name, covariates, predictions and outcomes."""
    import pandas as pd

    for name, (file, others) in TASKS.items():
        rows = pd.read_parquet(folder / file)
        covariates = rows[[c for c in rows if c not in others and not c.startswith("p_")]]
        for model in ("p_lr", "p_lgbm"):
            yield f"{name}.{model}", covariates, rows[model].to_numpy(), rows["y"].to_numpy(dtype=float)


def log_loss(y: np.ndarray, q: np.ndarray) -> float:
    """Mean log loss, predictions held 1e-6 away from 0 and 1."""
    q = np.clip(q, SAFE, 1 - SAFE)
    return float(-np.mean(y * np.log(q) + (1 - y) * np.log1p(-q)))


def ours(method: str) -> Repair:
    """Return one of our methods."""

    def run(x: Any, p: np.ndarray, y: np.ndarray, new: Any, q: np.ndarray) -> np.ndarray:
        columns = {"covariates": x} if cb.recalibrations()[method].needs_covariates else {}
        return cb.recalibrate(y, p, method=method, seed=0, **columns).predict(q, new)

    return run


def categories_of(x: Any) -> list[str]:
    """Return the columns that are not numbers."""
    from pandas.api.types import is_numeric_dtype

    return [c for c in x if not is_numeric_dtype(x[c])]


def segmented_platt(x: Any, p: np.ndarray, y: np.ndarray, new: Any, q: np.ndarray) -> np.ndarray:
    """Platt for each value of the category with most values; the global map where a value is new."""
    column = max(categories_of(x), key=lambda c: x[c].nunique())
    whole = cb.recalibrate(y, p, method="platt", shrink=None, seed=0)
    out = whole.predict(q)
    for value in x[column].unique():
        inside, there = (x[column] == value).to_numpy(), (new[column] == value).to_numpy()
        if 0 < y[inside].sum() < inside.sum() and there.any():
            out[there] = cb.recalibrate(y[inside], p[inside], method="platt", shrink=None, seed=0).predict(
                q[there]
            )
    return out


def mcgrad(x: Any, p: np.ndarray, y: np.ndarray, new: Any, q: np.ndarray) -> np.ndarray:
    """MCGrad with its defaults."""
    from mcgrad.methods import MCGrad

    categories = categories_of(x)
    numbers = [c for c in x if c not in categories]

    def frame(columns: Any, prediction: np.ndarray) -> Any:
        made = columns.copy()
        made["p"] = prediction
        for name in categories:
            made[name] = made[name].astype(object)
        return made

    model = MCGrad(lightgbm_params={"num_threads": 1})
    fitted = frame(x, p)
    fitted["y"] = y
    model.fit(fitted, "p", "y", None, categories, numbers)
    return np.asarray(model.predict(frame(new, q), "p", categories, numbers), dtype=float)


def judge(
    repair: Repair, x: Any, p: np.ndarray, y: np.ndarray, split: int, size: int | None = None
) -> dict[str, Any]:
    """Fit on one half (or `size` records of it), judge on the other."""
    order = np.random.default_rng(split).permutation(len(y))
    half = len(y) // 2
    fit, test = order[:half][:size], order[half:]
    start = time.process_time()
    q = np.clip(repair(x.iloc[fit], p[fit], y[fit], x.iloc[test], p[test]), 0, 1)
    seconds = time.process_time() - start
    found = {"log_loss": log_loss(y[test], q), "seconds": seconds}
    if size is None:
        options = {"subpopulations": 300, "min_size": 100, "draws": 99, "seed": 0}
        audited = cb.audit(y[test], q, covariates=x.iloc[test], **options)
        found |= {"ratio": audited.ratio, "pvalue": audited.pvalue}
        found["smooth"] = cb.smooth_calibration_error(y[test], q)
    return found


def measured(folder: Path, splits: int) -> Iterator[dict[str, Any]]:
    """Yield one row per task, method and split; `n` is how many records were fitted to, None for a half."""
    large: dict[str, Repair] = {name: ours(name) for name in LARGE}
    if peer("mcgrad") is not None:
        large["MCGrad"] = mcgrad
    small: dict[str, Repair] = {name: ours(name) for name in SMALL_METHODS}
    small["segmented platt"] = segmented_platt
    for task, x, p, y in tasks(folder):
        ours("boost")(x.iloc[:2000], p[:2000], y[:2000], x.iloc[:100], p[:100])  # machine code is ready
        for size in (None, *SMALL):
            for split in range(splits):
                for name, method in (large if size is None else small).items():
                    row = {"task": task, "n": size, "method": name, "split": split}
                    yield {**row, **judge(method, x, p, y, split, size)}


def main(folder: Path = DATA, splits: int = SPLITS) -> None:
    """Measure, print and write down: every split as CSV, the means as figures."""
    import pandas as pd

    if not folder.is_dir():
        print("no folder of real data next to the repo: nothing to measure")
        return
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rows = []
    for row in measured(folder, splits):
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        rows.append(row)
    table = pd.DataFrame(rows)
    table.round(6).to_csv(RESULTS / "repair.csv", index=False)
    summary(table).save()


def summary(table: Any) -> Report:
    """Return the means over splits, and the requirements against MCGrad."""
    report = Report("repair")
    means = table.fillna({"n": 0}).groupby(["task", "n", "method"], sort=False)[MEANS].mean()
    for (task, n, method), row in means.iterrows():
        size = f", n = {n:,.0f}" if n else ""
        report.figure(f"{task}{size}: {method}, log loss", float(row["log_loss"]), "nats")
        if not n:
            report.figure(f"{task}: {method}, M / sigma", float(row["ratio"]), "")
    if "MCGrad" not in set(table["method"]):
        report.skipped("next to MCGrad", "not installed")
        return report
    name = version("mcgrad")
    for task in dict.fromkeys(table["task"]):
        boost, theirs = means.loc[(task, 0, "boost")], means.loc[(task, 0, "MCGrad")]
        at_most = 0.5 if task.startswith("acs") else None
        times = float(boost["seconds"]), float(theirs["seconds"])
        report.ratio(f"{task}: boost, fit and predict", times[0], name, times[1], at_most)
        loss, ratio = (float(boost[k] - theirs[k]) for k in ("log_loss", "ratio"))
        report.figure(f"{task}: log loss of boost minus that of {name}", loss, "nats", 0.0)
        report.figure(f"{task}: M / sigma of boost minus that of {name}", ratio, "")
    return report


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
