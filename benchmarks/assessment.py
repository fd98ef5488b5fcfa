"""Is "helps" to be trusted? How often an assessment claims a gain that is not there, and covers the true one.

Twelve settings: two methods, two numbers of records, and predictions that are calibrated, somewhat or very
overconfident. The gain meant is that of the delivered map over all records there are.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import calibrant as cb
from benchmarks.harness import RESULTS, machine
from benchmarks.recalibration import wilson

METHODS, SIZES, SLOPES = ("platt", "centered-isotonic"), (100, 1_000), (1.0, 1.3, 2.0)
REPEATS = 1_000
RECORDS = 40_000


class Setting(NamedTuple):
    """A method, how many records it is fitted to, and what the logits of calibrated predictions are times."""

    method: str
    n: int
    slope: float


class Judged(NamedTuple):
    """How many samples were judged, claimed help in vain, and had an interval that holds the true gain."""

    repeats: int
    false_helps: int
    covered: int


SETTINGS = [Setting(*one) for one in product(METHODS, SIZES, SLOPES)]


def judged(setting: Setting, repeats: int, first_seed: int = 0) -> Judged:
    """Assess a fit to each of many samples."""
    rng = np.random.default_rng(17)
    truth = rng.beta(1.2, 1.8, RECORDS)
    p = 1 / (1 + np.exp(-setting.slope * np.log(truth / (1 - truth))))
    y = (rng.random(RECORDS) < truth).astype(float)
    before, false, covered = _expected_loss(truth, p), 0, 0
    for seed in range(first_seed, first_seed + repeats):
        chosen = np.random.default_rng(seed).choice(RECORDS, setting.n, replace=False)
        fitted = cb.recalibrate(y[chosen], p[chosen], method=setting.method, seed=seed)
        gain = before - _expected_loss(truth, fitted.predict(p))
        lower, upper = _interval(fitted)
        false += lower > 0 > gain
        covered += lower <= gain <= upper
    return Judged(repeats, false, covered)


def _expected_loss(truth: Any, q: Any) -> float:
    safe = np.clip(q, 1e-6, 1 - 1e-6)
    return float(-np.mean(truth * np.log(safe) + (1 - truth) * np.log1p(-safe)))


def _interval(fitted: cb.Recalibration) -> tuple[float, float]:
    """Return the interval of the log loss, which decides the verdict."""
    found = fitted.assessment
    if found is None:
        raise SystemExit(fitted.why_not_assessed)
    return found.lower, found.upper


def main(repeats: int = REPEATS) -> None:
    """Measure, print and keep the results."""
    rows = []
    for setting in SETTINGS:
        found = judged(setting, repeats)
        row = {**setting._asdict(), **found._asdict(), "false_at_most": wilson(found.false_helps, repeats)}
        rows.append(row)
        print(row, flush=True)
        text = json.dumps({"machine": machine(), "settings": rows}, indent=1)
        (RESULTS / "assessment.json").write_text(text + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
