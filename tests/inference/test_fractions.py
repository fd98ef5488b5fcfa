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
    few = (np.arange(300) < 4) * 0.5
    with pytest.raises(cb.TooFewRecordsError, match="above its prediction"):
        cb.calibration_test(few, np.full(300, 0.02) + np.linspace(0, 1e-3, 300))
    rejected = 0
    for seed in range(150):
        p = np.clip(rng.beta(1, 49, 1500), 1e-4, 1)
        y = (rng.random(1500) < 2 * p) * 0.5
        rejected += cb.calibration_test(y, p, draws=99, seed=seed).rejects(0.05)
    assert rejected <= size_bound(0.05, 150)


SKEWED = {
    "lognormal": lambda rng, p: p * rng.lognormal(-0.5, 1, len(p)),
    "exponential": lambda rng, p: p * rng.exponential(1, len(p)),
    "half-points": lambda rng, p: 0.5 * (rng.random(len(p)) < 2 * p),
    "beta": lambda rng, p: rng.beta(0.4 * p, 0.4 * (1 - p)),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1_000])
@pytest.mark.parametrize("kind", SKEWED)
def test_skewed_fractions_keep_the_size_where_they_are_not_refused(kind, n):
    """Random signs alone rejected 7 to 11% of these: a sample without rare large values has a low mean."""
    sets, tests = 400, ("omnibus", "kuiper", "in-the-large")
    rejected, refused = np.zeros(3), 0
    for seed in range(sets):
        rng = np.random.default_rng([seed, n])
        p = rng.uniform(0.02, 0.08, n)
        y = np.minimum(SKEWED[kind](rng, p), 1.0)
        try:
            rejected += [cb.calibration_test(y, p, measure=one, draws=99).rejects(0.05) for one in tests]
        except cb.TooFewRecordsError:
            refused += 1
    assert refused <= (sets if n == 50 and kind in ("half-points", "beta") else sets / 20)
    assert np.all(rejected <= binom.ppf(1 - 1e-3, sets - refused, 0.05))


def test_errors_along_the_skewness_of_fractions_are_found_and_those_against_it_need_more():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.08, 200)
    y = np.minimum(SKEWED["exponential"](rng, p), 1.0)
    y *= p.sum() / y.sum()  # no error on the whole
    low, high = (cb.calibration_test(y, factor * p, measure="in-the-large").pvalue for factor in (0.85, 1.15))
    assert low < 0.05 < high
    assert cb.calibration_test(y, 1.5 * p, measure="in-the-large").pvalue < 0.05


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


def test_the_mean_for_fractions_is_that_of_signs_and_not_of_independent_draws():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.clip(p + 0.02 * rng.normal(size=300), 0, 1)
    for measure in ("atb", "ubse", "kernel-squared"):
        mean = cb.confidence_interval(y, p, measure=measure, draws=99).null_mean
        assert mean == cb.calibration_test(y, p, measure=measure, draws=99).null_mean
        assert mean == pytest.approx(np.sum((y - p) ** 2) / 300**2, rel=0.3)
    assert np.isnan(cb.confidence_interval(y, p, measure="lower-distance", draws=9).null_mean)
