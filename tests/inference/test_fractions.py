"""Fractional outcomes: tested by random signs, and by a limit law where there are many."""

from __future__ import annotations

import numpy as np
import pytest
from samples import size_bound
from scipy.stats import binom

import calibrant as cb


def test_fractions_are_tested_by_signs_and_many_by_the_law():
    rng = np.random.default_rng(6)
    for n, method in ((200, "signs"), (20_000, "asymptotic")):
        p = rng.random(n)
        y = np.clip(p + rng.uniform(-0.05, 0.05, n), 0, 1) * 0.999
        assert cb.calibration_test(y, p, measure="kuiper", draws=19).method == method
    with pytest.raises(cb.CalibrantError, match="0 or 1 to simulate"):
        cb.calibration_test(y, p, method="exact")


@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "ks", "in-the-large", "smooth", "brier"])
@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_fractions_have_the_right_size_whatever_their_variance(measure, noise):
    rng = np.random.default_rng(7)
    ps = []
    for _ in range(200):
        p = rng.random(200)
        y = p + noise * rng.uniform(-1, 1, 200) * np.minimum(p, 1 - p)
        ps.append(cb.calibration_test(y, p, measure=measure, draws=99).pvalue)
    assert np.sum(np.array(ps) <= 0.05) <= size_bound(0.05, 200)
    assert np.sum(np.array(ps) <= 0.5) >= 60


def test_rare_half_points_are_too_little_data_or_keep_the_size():
    """Twelve percent of such data sets were rejected when the variance was estimated from neighbors."""
    rng = np.random.default_rng(8)
    few = (rng.random(300) < 0.04) * 0.5
    with pytest.raises(cb.TooFewRecordsError, match="above its prediction"):
        cb.calibration_test(few, np.full(300, 0.02) + np.linspace(0, 1e-3, 300))
    rejected = 0
    for seed in range(150):
        p = np.clip(rng.beta(1, 49, 1500), 1e-4, 1)
        y = (rng.random(1500) < 2 * p) * 0.5
        rejected += cb.calibration_test(y, p, draws=99, seed=seed).rejects(0.05)
    assert rejected <= size_bound(0.05, 150)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "in-the-large"])
def test_few_fractions_keep_the_size(measure, weighted):
    rng, sets = np.random.default_rng(17), 1_500
    rejected = 0
    for _ in range(sets):
        p = rng.random(20)
        w = np.exp(rng.normal(0, 0.7, 20)) if weighted else None
        f = cb.Forecasts(rng.beta(4 * p, 4 * (1 - p)), p, sample_weight=w)
        try:
            rejected += cb.calibration_test(f, measure=measure, draws=99).pvalue <= 0.05
        except cb.TooFewRecordsError:
            continue
    assert rejected <= binom.ppf(1 - 1e-4, sets, 0.05)


def test_no_mean_of_independent_draws_is_given_for_fractions():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.clip(p + 0.02 * rng.normal(size=300), 0, 1)
    for measure in ("atb", "ubse", "kernel-squared"):
        assert np.isnan(cb.confidence_interval(y, p, measure=measure, draws=9).null_mean)
