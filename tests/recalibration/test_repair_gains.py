"""What a repair by covariates gains, and that it leaves alone what is right."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks.repair import log_loss, segmented_platt, tasks
from calibrant import recalibrate
from calibrant.recalibration.result import RecalibrationWarning


def noise(seed, n):
    """Calibrated predictions, and covariates that know nothing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.choice(list("abcdef"), n), "b": rng.normal(size=n), "c": rng.integers(0, 3, n)}
    )
    p = rng.beta(2, 3, n)
    return rng.random(n) < p, p, frame


@pytest.mark.slow
def test_covariates_that_are_noise_leave_the_predictions_alone():
    pytest.importorskip("lightgbm")
    harmed = 0
    for seed in range(20):
        y, p, frame = noise(seed, 500)
        made = recalibrate(y, p, covariates=frame, seed=0)
        _, new, other = noise(1000 + seed, 20_000)
        harmed += log_loss(new, made.predict(new, other)) > log_loss(new, new) + 0.5e-3
    assert harmed <= 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [500, 2_000])
def test_shifts_gain_more_than_a_global_map_and_than_a_map_per_segment(size, shared_data):
    gains = {}
    for task, x, p, y in tasks(shared_data):
        for split in range(3 if task in ("acs.p_lr", "adult.p_lgbm") else 0):
            order = np.random.default_rng(split).permutation(len(y))
            fit, test = order[:size], order[len(y) // 2 :]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecalibrationWarning)
                made = recalibrate(y[fit], p[fit], method="hierarchical", covariates=x.iloc[fit], seed=0)
                found = {"hierarchical": made.predict(p[test], x.iloc[test])}
                for name in ("platt", "spline"):
                    found[name] = recalibrate(y[fit], p[fit], method=name, seed=0).predict(p[test])
                found["segments"] = segmented_platt(x.iloc[fit], p[fit], y[fit], x.iloc[test], p[test])
            for name, q in found.items():
                gains.setdefault((task, name), []).append(log_loss(y[test], p[test]) - log_loss(y[test], q))
    for task in {task for task, _ in gains}:
        mean = {name: np.mean(gains[task, name]) for name in ("hierarchical", "platt", "spline", "segments")}
        assert max(mean, key=mean.get) == "hierarchical", (task, mean)
