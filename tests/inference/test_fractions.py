"""Outcomes that are fractions: tested by the law alone, with a variance estimated from neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from samples import samples, size_bound
from scipy.stats import binom, norm
from scipy.stats import t as student

import calibrant as cb
from calibrant.inference.continuous import as_if_known, deviation_of_continuous


def test_fractions_are_tested_by_the_law_only():
    rng = np.random.default_rng(6)
    n = 4000
    p = rng.random(n)
    y = np.clip(p + rng.uniform(-0.05, 0.05, n), 0, 1) * 0.999
    found = cb.calibration_test(y, p)
    assert found.method == "asymptotic"
    with pytest.raises(cb.CalibrantError, match="0 or 1 to simulate"):
        cb.calibration_test(y, p, method="exact")


@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "ks", "in-the-large"])
@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_fractions_have_the_right_size_whatever_their_variance(measure, noise):
    rng = np.random.default_rng(7)
    ps = []
    for _ in range(300):
        p = rng.random(400)
        y = p + noise * rng.uniform(-1, 1, 400) * np.minimum(p, 1 - p)
        ps.append(cb.calibration_test(y, p, measure=measure).pvalue)
    assert np.sum(np.array(ps) <= 0.05) <= size_bound(0.05, 300)
    assert np.sum(np.array(ps) <= 0.5) >= 100


@pytest.mark.parametrize("measure", ["brier", "spiegelhalter", "hosmer-lemeshow"])
def test_tests_that_need_the_variance_of_an_outcome_refuse_fractions(measure):
    with pytest.raises(cb.CalibrantError, match="must be 0 or 1"):
        cb.calibration_test([0.2, 0.5, 0.7], [0.3, 0.5, 0.6], measure=measure)


@given(sample=samples(min_size=2))
@settings(max_examples=60)
def test_deviation_of_continuous_outcomes_ignores_row_order_in_ties(sample):
    if sample.forecasts.record_outcomes is None:
        return
    order = np.lexsort((sample.y, sample.p))
    w = None if sample.w is None else np.ones(len(order))
    one = cb.Forecasts(sample.y, sample.p, sample_weight=w)
    other = cb.Forecasts(sample.y[order], sample.p[order], sample_weight=w)
    if one.record_outcomes is not None:
        assert deviation_of_continuous(one) == pytest.approx(deviation_of_continuous(other), abs=1e-12)


def test_deviation_is_equation_6_when_predictions_are_distinct():
    rng = np.random.default_rng(9)
    p = np.sort(rng.random(50))
    y = rng.random(50)
    top = np.sum(np.diff(y - p) ** 2 * (1 + 1) ** 2)
    bottom = 4 * 50 * (1 + 1 + 2 * 48)
    assert deviation_of_continuous(cb.Forecasts(y, p)) == pytest.approx(math.sqrt(top / bottom))


def test_the_variance_of_weighted_fractions_has_no_bias():
    """Eq. (6) weighs squared differences by (w + w')^2, which is a fifth too little for these weights."""
    rng = np.random.default_rng(9)
    n, spread = 40, 0.1
    p = np.linspace(0.3, 0.7, n)
    w = np.exp(rng.normal(0, 0.7, n))
    w[[0, -1]] = w.mean()  # a pair weighs the ends half as much as all others
    true = spread**2 * np.sum(w**2) / w.sum() ** 2
    noise = rng.choice([-spread, spread], size=(2_000, n))
    shown = [deviation_of_continuous(cb.Forecasts(p + e, p, sample_weight=w)) ** 2 for e in noise]
    assert np.mean(shown) == pytest.approx(true, abs=4 * np.std(shown) / math.sqrt(2_000))
    assert np.mean(shown) == pytest.approx(true, rel=0.05)


def test_quotients_by_an_estimated_deviation_are_students():
    """Mapped to normal quantiles: with 61 records alone there are 40 degrees of freedom."""
    p = np.linspace(0.2, 0.8, 61)
    f = cb.Forecasts(p / 2, p)
    for x in (0.5, 2.0, 3.0, 5.0):
        assert norm.sf(as_if_known(x, f)) == pytest.approx(student.sf(x, 40), rel=0.03)
    many = cb.Forecasts(np.full(20_000, 0.25), np.repeat([0.2, 0.3], 10_000))
    assert as_if_known(3.0, many) == pytest.approx(3.0, rel=1e-3)
    alone = cb.Forecasts([0.25], [0.3])
    assert np.isfinite(as_if_known(np.array([0.0, 1e300]), alone)).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("measure", ["omnibus", "kuiper", "in-the-large"])
def test_few_fractions_keep_the_size(measure, weighted):
    """At 20 records the size was 6 to 8 %: noise is estimated, and weights made the estimate too small."""
    rng, sets = np.random.default_rng(17), 1_500
    rejected = 0
    for _ in range(sets):
        p = rng.random(20)
        w = np.exp(rng.normal(0, 0.7, 20)) if weighted else None
        f = cb.Forecasts(rng.beta(4 * p, 4 * (1 - p)), p, sample_weight=w)
        rejected += cb.calibration_test(f, measure=measure).pvalue <= 0.05
    assert rejected <= binom.ppf(1 - 1e-4, sets, 0.05)
