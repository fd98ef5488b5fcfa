"""Interval calibration error: both conventions against all partitions, the surrogate against all shifts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import distance as oracle
from samples import samples
from time_limit import time_limit

import calibrant as cb
from calibrant.kernels.cumulative import shifted_error
from calibrant.kernels.partitions import spread_boundaries
from calibrant.metrics.distance import upper as interval

certify = cb.interval_calibration_error.core


@pytest.mark.parametrize("width", ["average", "max"])
@given(sample=samples(max_size=9))
@settings(max_examples=60)
def test_equals_the_best_of_all_partitions(width, sample):
    f = sample.forecasts
    found = certify(f, width=width)
    slow = oracle.interval_calibration_error(f.values, f.weights, f.outcomes, width)
    assert found.exact
    assert found.value == pytest.approx(slow, abs=1e-12)


@given(sample=samples(max_size=12))
def test_the_mean_over_shifts_is_exact(sample):
    f = sample.forecasts
    for width in (1.0, 0.5, 0.125, 0.3):
        slow = oracle.random_interval_error(f.values, f.weights, f.outcomes, width)
        assert shifted_error(f.values, f.residuals, width) == pytest.approx(slow, abs=1e-9)


@given(sample=samples(max_size=12))
def test_however_narrow_the_bins_they_hold_all_residuals(sample):
    f = sample.forecasts
    for k in range(44):
        error = shifted_error(f.values, f.residuals, 0.5**k)
        assert abs(f.residuals.sum()) - 1e-9 <= error <= np.abs(f.residuals).sum() + 1e-9
    gap = np.diff(f.values, append=2).min()
    if gap > 1e-9:
        alone = shifted_error(f.values, f.residuals, gap / 1000)
        assert alone == pytest.approx(np.abs(f.residuals).sum(), rel=1e-6, abs=1e-15)


def test_the_surrogate_does_not_fall_through_narrow_bins():
    """A sum that rounded below the error level by level once went on to widths where v - w is v."""
    y = np.array([0.0] * 19 + [1.0])
    p = np.array([0, 0, 0, 0, 0, 1, 0.5, 0.75, 0.625, 0.875, 0.6875, 0.25, 0.375, 0.4375, 0.40625, 0.125])
    p = np.append(p, [0.1875, 0.0625, 0.03125, 0.7890625])
    assert cb.interval_calibration_error(y, p, method="surrogate") >= abs(np.mean(y - p))


@given(sample=samples(max_size=12))
def test_the_surrogate_is_the_best_power_of_two(sample):
    f = sample.forecasts
    found = certify(f, method="surrogate").value
    tried = [shifted_error(f.values, f.residuals, 0.5**k) + 0.5**k for k in range(40)]
    assert found <= min(tried) + 1e-12
    assert found >= min(*tried, np.abs(f.residuals).sum()) - 1e-12


@pytest.mark.parametrize("width", ["average", "max"])
@given(sample=samples(max_size=10))
@settings(max_examples=30)
def test_the_bracket_holds_the_exact_value(width, sample):
    f = sample.forecasts
    exact = certify(f, width=width).value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval, "EXACT_LEVELS", {"average": 3, "max": 3})
        found = certify(f, width=width)
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-12
    assert found.exact == (f.levels <= 3)


def test_the_bins_of_the_average_width_attain_the_value():
    rng = np.random.default_rng(2)
    v = rng.random(3_000)
    f = cb.Forecasts(rng.random(3_000) < v, v)
    found = certify(f)
    starts = found.details["starts"]
    edges = np.append(starts, 1.0)
    edges[0] = 0.0
    assert found.details["bins"] == len(starts)
    assert cb.binned_calibration_error(f, bins=edges.tolist(), add_width=True) == pytest.approx(found.value)


def test_many_levels_give_a_bracket_that_says_so():
    rng = np.random.default_rng(3)
    v = rng.random(30_000)
    f = cb.Forecasts(rng.random(30_000) < v**2, v)
    for width in ("average", "max"):
        found = certify(f, width=width)
        assert not found.exact
        assert 0.1 < found.lower <= found.value == found.upper < 0.25


def test_chosen_boundaries_keep_both_ends_and_stay_in_order():
    curve = np.concatenate([[0.0], np.cumsum(np.random.default_rng(4).normal(size=5_000))])
    for limit in (3, 10, 512):
        chosen = spread_boundaries(curve, limit)
        assert chosen[0] == 0
        assert chosen[-1] == 5_000
        assert len(chosen) <= limit
        assert np.all(np.diff(chosen) > 0)


def test_wrong_options_are_refused():
    for options in ({"width": "mean"}, {"method": "sampled"}):
        with pytest.raises(cb.CalibrantError, match=next(iter(options))):
            cb.interval_calibration_error([0, 1], [0.2, 0.8], **options)


def test_the_largest_width_of_every_pair_of_two_digits_is_found_in_time():
    """.9 - .3 and .3 + .6 differ in the last digit; a search that used both once never ended."""
    for a in range(100):
        for b in range(a + 1, 101):
            low, high = a / 100, b / 100
            with time_limit(30, (low, high)):
                found = cb.interval_calibration_error([1, 0], [low, high], width="max")
            apart, together = (1 - low + high) / 2, abs(1 - low - high) / 2 + high - low
            assert found == pytest.approx(min(apart, together), abs=1e-15)


@st.composite
def gridded(draw):
    """Decimals of one or two digits, outcomes, and weights of one digit or of many orders of magnitude."""
    grid = draw(st.sampled_from([10, 20, 100]))
    marks = draw(st.lists(st.integers(0, grid), min_size=1, max_size=8, unique=True))
    m = len(marks)
    digits = st.integers(1, 10).map(lambda k: k / 10)
    orders = st.integers(-15, 15).map(lambda k: 10.0**k)
    weights = draw(st.lists(draw(st.sampled_from([digits, orders])), min_size=m, max_size=m))
    return np.sort(marks) / grid, draw(st.lists(st.integers(0, 1), min_size=m, max_size=m)), weights


@given(case=gridded())
@settings(max_examples=300, deadline=None)
def test_the_largest_width_equals_a_dynamic_program_in_fractions(case):
    p, y, w = case
    with time_limit(30, case):
        found = certify(cb.Forecasts(y, p, sample_weight=w), width="max")
    assert found.exact
    assert found.value == pytest.approx(float(oracle.least_largest_width(p, y, w)), abs=1e-14)


def test_the_largest_width_of_three_weighted_decimals():
    p, y, w = [0.7, 0.8, 0.9], [0, 1, 1], [0.3, 0.7, 1]
    assert cb.interval_calibration_error(y, p, sample_weight=w, width="max") == pytest.approx(0.185)
