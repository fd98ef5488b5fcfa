"""Nearly equal models of which one may be calibrated: the sign of the noise decides which looks better."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import compare, smooth_calibration_error
from calibrant.metrics.lookup import find_measure


def models(rng, n):
    p = 0.1 + 0.8 * rng.random(n)
    return p, {"a": p, "b": p + 0.005, "c": np.clip(p + 0.05, 0, 1), "d": 0.5 + 0.8 * (p - 0.5)}


def test_the_interval_reaches_the_difference_that_calibration_of_one_model_would_give():
    rng = np.random.default_rng(0)
    p = 0.1 + 0.8 * rng.random(400)
    y = (rng.random(400) < p - 0.02).astype(int)  # b is worse here, and a may be calibrated
    [pair] = compare(y, {"b": p + 0.005, "a": p}, measure="smooth", draws=99, seed=1).differences
    assert pair.difference > 0
    assert pair.upper >= smooth_calibration_error(p, p + 0.005) - 1e-12
    assert pair.lower < 0
    assert pair.pvalue > 0.05


@pytest.mark.parametrize("measure", ["smooth", "atb", "in-the-large"])
def test_seeds_do_not_decide_between_models_that_are_far_from_calibrated(measure):
    rng = np.random.default_rng(0)
    p = rng.integers(1, 9, 2000) / 10
    y = (rng.random(2000) < p + 0.1).astype(int)
    pairs = [
        compare(y, p, p - 0.001, measure=measure, draws=199, seed=seed).differences[0] for seed in range(8)
    ]
    assert {pair.pvalue for pair in pairs} == {0.01}
    assert max(pair.upper - pair.lower for pair in pairs) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["smooth", "kuiper", "binned"])
def test_intervals_hold_the_true_differences(measure):
    _, truths = models(np.random.default_rng(2), 200_000)
    true = {name: find_measure(measure).function(truths["a"], v) for name, v in truths.items()}
    missed: dict[tuple[str, str], int] = {}
    for seed in range(150):
        rng = np.random.default_rng(1000 + seed)
        p, named = models(rng, 300)
        y = (rng.random(300) < p).astype(int)
        for pair in compare(y, named, measure=measure, draws=99, seed=seed).differences:
            expected = true[pair.first] - true[pair.second]
            held = pair.lower - 1e-9 <= expected <= pair.upper + 1e-9
            missed[pair.first, pair.second] = missed.get((pair.first, pair.second), 0) + (not held)
    assert max(missed.values()) <= 18  # of 150; 5% are 7.5, and 18 is exceeded by chance in 1 of 3,000
