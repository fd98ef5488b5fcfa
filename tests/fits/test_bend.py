"""The test for a bend keeps its level, sees what Cox's test cannot, and flips with the outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import fits as oracle
from recalibration.laws import gridded
from samples import samples
from scipy.stats import binom, chi2

from calibrant import recalibrate
from calibrant.fits.levels import Levels, levels_of_sorted
from calibrant.fits.spline import CLIP, MIN_VARIANCE, curvature_pvalue


def levels(y, p):
    order = np.argsort(p, kind="stable")
    return levels_of_sorted(p[order], y[order].astype(float), np.ones(len(p)))


def bent(bend, n=1_000, seed=0):
    """Records whose true curve is higher at both ends, intercept and slope being right on average."""
    rng = np.random.default_rng(seed)
    place = rng.normal(size=n)
    truth = 1 / (1 + np.exp(-(place + bend * (place**2 - 1.1))))
    return (rng.random(n) < truth).astype(int), 1 / (1 + np.exp(-place))


def test_level():
    rng = np.random.default_rng(5)
    p = rng.beta(1.2, 1.8, 500)
    rejected = sum(curvature_pvalue(levels(rng.random(500) < p, p)) < 0.05 for _ in range(1_000))
    assert binom.ppf(1e-4, 1_000, 0.05) <= rejected <= binom.ppf(1 - 1e-4, 1_000, 0.05)


def test_the_statistic_by_hand():
    """Three predictions far apart: three terms explain all, and the statistic is a sum of squares."""
    p = np.repeat([0.2, 0.5, 0.7], 100)
    y = np.concatenate((np.arange(100) < 30, np.arange(100) < 50, np.arange(100) < 60))
    statistic = sum(
        (hits - 100 * q) ** 2 / (100 * q * (1 - q)) for hits, q in ((30, 0.2), (50, 0.5), (60, 0.7))
    )
    assert curvature_pvalue(levels(y, p)) == pytest.approx(chi2.sf(statistic, 3), rel=1e-9)


@given(samples(weighted=False), st.integers(0, 3))
def test_the_statistic_is_what_three_columns_explain(sample, start):
    found = Levels.of(sample.forecasts, frequency=True)
    weights = 10.0 ** ((start + np.arange(len(found))) % 4 - 2)  # not so far apart that rounding decides
    found = Levels(found.values, found.rates, found.weights * weights)
    statistic = oracle.score_statistic_by_projection(
        found.values, found.rates, found.weights, CLIP, MIN_VARIANCE
    )
    assert curvature_pvalue(found) == pytest.approx(chi2.sf(statistic, 3), rel=1e-4, abs=1e-9)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 19), min_size=5, max_size=19, unique=True), st.randoms(use_true_random=False))
def test_the_statistic_is_rao_s_by_finite_differences(twentieths, random):
    p = np.sort(np.array(twentieths)) / 20
    y = np.array([random.choice([0.0, 0.3, 1.0]) for _ in p])
    w = np.array([random.choice([0.5, 1.0, 7.0]) for _ in p])
    statistic = oracle.score_statistic_by_differences(p, y, w)
    assert curvature_pvalue(Levels(p, y, w)) == pytest.approx(chi2.sf(statistic, 3), rel=1e-3)


@settings(max_examples=60)
@given(gridded())
def test_flipping_outcomes_and_predictions_changes_nothing(sample):
    y, p = sample
    one, other = curvature_pvalue(levels(y, p)), curvature_pvalue(levels(1 - y, 1 - p))
    assert 0 <= one <= 1
    assert one == pytest.approx(other, abs=1e-6)


def test_auto_bends_where_only_the_bend_is_off():
    assert recalibrate(*bent(bend=0.2, seed=1), seed=0).chosen == "spline"
    assert recalibrate(*bent(bend=0.0, seed=2), seed=0).chosen == "identity"
