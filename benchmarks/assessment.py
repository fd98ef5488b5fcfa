"""Is "helps" to be trusted? How often an assessment claims a gain that is not there, and covers the true one.

Two methods, two numbers of records, and predictions that are calibrated, somewhat or very overconfident; then
the same for weighted records, records in clusters, sketches, trees on covariates, and `auto`. The gain meant
is that of the delivered map over all records there are.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

import calibrant as cb
from benchmarks.harness import RESULTS, machine
from benchmarks.recalibration import wilson

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
    """How many samples were judged, claimed help in vain, and had an interval that holds the true gain.

    `smooth_covered` counts intervals of the gain in smooth calibration error that hold the true one.
    """

    repeats: int
    false_helps: int
    covered: int
    smooth_covered: int


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
    before, false, covered, smooth = _expected_loss(truth, p), 0, 0, 0
    error = cb.smooth_calibration_error(truth, p)
    for seed in range(first_seed, first_seed + repeats):
        fitted = _fitted(setting, seed, y, p, region)
        q = fitted.predict(p, {"region": region} if setting.kind == "covariates" else None)
        gain, gain_of_error = before - _expected_loss(truth, q), error - cb.smooth_calibration_error(truth, q)
        found = fitted.assessment
        if found is None:
            raise SystemExit(fitted.why_not_assessed)
        false += found.lower > 0 > gain
        covered += found.lower <= gain <= found.upper
        smooth += found.changes["smooth"].lower <= gain_of_error <= found.changes["smooth"].upper
    return Judged(repeats, false, covered, smooth)


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


def main(repeats: int = REPEATS, further: int = REPEATS // 5) -> None:
    """Measure, print and keep the results: the first settings on `repeats` samples, the rest on `further`."""
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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
