"""Is "helps" to be trusted? How often an assessment claims a gain that is not there, and covers the true one.

Two methods, two numbers of records, and predictions that are calibrated, somewhat or very overconfident; then
the same for weighted records, records in clusters, sketches, trees on covariates, and `auto`. The gain meant
is that of the delivered map over all records there are. Last, how often the band of a map holds the true
calibration curve at five predictions, for scores as they are and rounded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

import calibrant as cb
from benchmarks.harness import RESULTS, machine
from benchmarks.recalibration_accuracy import wilson

METHODS, SIZES, SLOPES = ("platt", "centered-isotonic"), (100, 1_000), (1.0, 1.3, 2.0)
REPEATS = 1_000
RECORDS = 40_000
CLUSTER = 10  # records per cluster


class Setting(NamedTuple):
    """A method, how many records it is fitted to, what the logits of calibrated predictions are times.

    `kind` is how the records come: "rows", "weights" (log-normal), "clusters" (of ten, correlated), "cells"
    (a sketch), or "covariates" (one of which shifts the truth).
    """

    method: str
    n: int
    slope: float
    kind: str = "rows"


class Judged(NamedTuple):
    """How many samples were judged, claimed help in vain, and had an interval that holds the true gain."""

    repeats: int
    false_helps: int
    covered: int


SETTINGS = [Setting(*one) for one in product(METHODS, SIZES, SLOPES)]
FURTHER = [
    *(Setting("platt", 1_000, s, kind) for kind in ("weights", "clusters", "cells") for s in SLOPES[:2]),
    *(Setting("boost", 1_000, slope, "covariates") for slope in SLOPES[:2]),
    *(Setting("auto", n, slope) for n in SIZES for slope in SLOPES[:2]),
]  # fmt: skip


def judged(setting: Setting, repeats: int, first_seed: int = 0) -> Judged:
    """Assess a fit to each of many samples."""
    rng = np.random.default_rng(17)
    believed = rng.beta(1.2, 1.8, RECORDS)
    region = rng.choice(["a", "b"], RECORDS)
    moved = np.zeros(RECORDS)
    if setting.kind == "clusters":
        moved = np.repeat(rng.normal(0, 0.7, RECORDS // CLUSTER), CLUSTER)
    if setting.kind == "covariates":
        moved = np.where(region == "a", 0.4, -0.4)
    truth, p = expit(logit(believed) + moved), expit(setting.slope * logit(believed))
    y = (rng.random(RECORDS) < truth).astype(float)
    before, false, covered = _expected_loss(truth, p), 0, 0
    for seed in range(first_seed, first_seed + repeats):
        fitted = _fitted(setting, seed, y, p, region)
        q = fitted.predict(p, {"region": region} if setting.kind == "covariates" else None)
        gain = before - _expected_loss(truth, q)
        found = fitted.assessment
        if found is None:
            raise SystemExit(fitted.why_not_assessed)
        false += found.lower > 0 > gain
        covered += found.lower <= gain <= found.upper
    return Judged(repeats, false, covered)


def _fitted(setting: Setting, seed: int, y: Any, p: Any, region: Any) -> cb.Recalibration:
    """Draw the records of one sample, as the setting says they come, and fit them."""
    rng = np.random.default_rng(seed)
    rows, extra = rng.choice(RECORDS, setting.n, replace=False), dict[str, Any]()
    if setting.kind == "clusters":
        chosen = rng.choice(RECORDS // CLUSTER, setting.n // CLUSTER, replace=False)
        rows = (chosen[:, None] * CLUSTER + np.arange(CLUSTER)).ravel()
        extra["clusters"] = rows // CLUSTER
    if setting.kind == "weights":
        extra["sample_weight"] = np.exp(rng.normal(0, 0.7, setting.n))
    if setting.kind == "covariates":
        extra["covariates"] = {"region": region[rows]}
    if setting.kind == "cells":
        sketch = cb.Sketch.from_arrays(y[rows], p[rows])
        return cb.recalibrate(sketch, method=setting.method, seed=seed)
    return cb.recalibrate(y[rows], p[rows], method=setting.method, seed=seed, **extra)


def _expected_loss(truth: Any, q: Any) -> float:
    safe = np.clip(q, 1e-6, 1 - 1e-6)
    return float(-np.mean(truth * np.log(safe) + (1 - truth) * np.log1p(-safe)))


SCORES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "logit-normal": lambda rng, n: expit(rng.normal(0, 1.5, n)),
    "low": lambda rng, n: rng.beta(1, 9, n),
    "uniform": lambda rng, n: rng.uniform(0.001, 0.999, n),
    "rare": lambda rng, n: expit(rng.normal(-4, 1, n)),
}
CURVES: dict[str, Callable[[Any], Any]] = {
    "calibrated": lambda x: x,
    "shift": lambda x: x + 0.5,
    "slope 0.7": lambda x: 0.7 * x,
    "slope 1.15": lambda x: 1.15 * x,
    "S": lambda x: x + 0.6 * np.sin(1.2 * x),
    "waves": lambda x: x + 0.3 * np.sin(2 * x),
}
AT = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def band_coverage(scores: str, curve: str, n: int, step: float | None, sets: int) -> list[float | None]:
    """Return how often the band of a Platt map holds the true rate at each of five predictions.

    The true rate of a rounded score is that of all scores rounded to it; None where there are hardly any.
    """

    def drawn(rng: np.random.Generator, size: int) -> tuple[Any, Any]:
        p = SCORES[scores](rng, size)
        truth = expit(CURVES[curve](logit(np.clip(p, 1e-9, 1 - 1e-9))))
        return p if step is None else np.round(np.round(p / step) * step, 12), truth

    many, rates = drawn(np.random.default_rng(1), 10**6)
    counts = [np.count_nonzero(many == level) for level in AT]
    truth = expit(CURVES[curve](logit(AT)))
    if step is not None:
        truth = [rates[many == a].mean() if c >= 100 else np.nan for a, c in zip(AT, counts, strict=True)]
    hits, fitted = np.zeros(len(AT)), 0
    for seed in range(sets):
        rng = np.random.default_rng([seed, n])
        p, chance = drawn(rng, n)
        y = (rng.random(n) < chance).astype(float)
        if 0 < y.sum() < n:  # one outcome alone has no Platt map
            band = cb.recalibrate(y, p, method="platt").band(AT)
            hits += (band.lower <= truth) & (truth <= band.upper)
            fitted += 1
    return [None if np.isnan(true) else float(hit / fitted) for hit, true in zip(hits, truth, strict=True)]


def bands(sets: int = 400) -> list[dict[str, Any]]:
    """Measure the coverage of bands, a row per rounding, kind of scores, true curve and number of records."""
    rows = []
    for step, scores, curve, n in product((None, 0.05, 0.1), SCORES, CURVES, (200, 1_000, 5_000)):
        covered = band_coverage(scores, curve, n, step, sets)
        rows.append(
            {"step": step, "scores": scores, "curve": curve, "n": n, "covered": covered, "sets": sets}
        )
        print(rows[-1], flush=True)
    return rows


def main(repeats: int = REPEATS, further: int = REPEATS // 5, sets: int = 400) -> None:
    """Measure, print and keep the results: the first settings on `repeats` samples, the rest on `further`.

    Settings are left as they were measured last where `repeats` is 0.
    """
    if repeats == 0:
        found = json.loads((RESULTS / "assessment.json").read_text())
        text = json.dumps({**found, "bands": bands(sets)}, indent=1)
        (RESULTS / "assessment.json").write_text(text + "\n")
        return
    rows = []
    for setting, count in [*((one, repeats) for one in SETTINGS), *((one, further) for one in FURTHER)]:
        found = judged(setting, count)
        row = {**setting._asdict(), **found._asdict(), "false_at_most": wilson(found.false_helps, count)}
        rows.append(row)
        print(row, flush=True)
        text = json.dumps({"machine": machine(), "settings": rows}, indent=1)
        (RESULTS / "assessment.json").write_text(text + "\n")
    worst = min(rows, key=lambda row: row["covered"] / row["repeats"])
    print(f"least coverage: {worst['covered'] / worst['repeats']:.1%} for {worst}")
    text = json.dumps({"machine": machine(), "settings": rows, "bands": bands(sets)}, indent=1)
    (RESULTS / "assessment.json").write_text(text + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
