"""U-calibration and monotone regret: equal to the program over all bounded proper payoffs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import decision as oracle
from samples import Sample, samples

import calibrant as cb

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.metrics.binned.LevelSetWarning")


def constant(sample: Sample) -> np.ndarray:
    """The base rate, as the prediction that it equals but for rounding."""
    rate = float(np.clip(np.sum(sample.weights * sample.y), 0, 1))
    nearest = sample.p[np.argmin(np.abs(sample.p - rate))]
    return np.full(len(sample.p), nearest if abs(nearest - rate) <= 1e-12 else rate)


@given(sample=samples(max_size=9))
@settings(max_examples=250)
def test_equals_the_program_over_all_payoffs(sample):
    beliefs = np.unique(np.append(sample.p, constant(sample)))
    assume(
        np.diff(beliefs, prepend=-1).min() > 1e-6
    )  # the program's tolerance blurs reports that nearly agree
    exact = oracle.better_report(sample.y, sample.weights, sample.p, constant(sample))
    assert cb.u_calibration_error(sample.forecasts) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("digits", [1, 2, 15])
def test_equals_the_program_on_gridded_and_continuous_cases(digits):
    rng = np.random.default_rng(digits)
    for k in range(40):
        n = int(rng.integers(1, 22))
        p, y = np.round(rng.random(n), digits), rng.integers(0, 2, n)
        sample = Sample(y, p, rng.random(n) ** 4 if k % 2 else None)
        exact = oracle.better_report(sample.y, sample.weights, sample.p, constant(sample))
        assert cb.u_calibration_error(sample.forecasts) == pytest.approx(exact, abs=1e-8)


@given(sample=samples(max_size=9))
@settings(max_examples=150)
def test_monotone_regret_equals_the_program(sample):
    rates = oracle.best_monotone(sample)
    spacing = np.diff(np.unique(np.concatenate((sample.p, rates))), prepend=-1)
    assume(spacing.min() > 1e-6)  # a rate may equal a prediction but for rounding, and ties decide
    exact = oracle.better_report(sample.y, sample.weights, sample.p, rates)
    assert cb.monotone_regret(sample.forecasts) == pytest.approx(exact, abs=1e-8)


@given(sample=samples())
@settings(max_examples=400)
def test_constants_are_monotone_and_monotone_maps_are_maps(sample):
    """U-calibration <= monotone regret <= decision loss, on every sample."""
    f = sample.forecasts
    least, middle, most = cb.u_calibration_error(f), cb.monotone_regret(f), cb.decision_loss(f)
    assert 0 <= least <= middle + 1e-12
    assert middle <= most + 1e-12


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=300)
def test_the_base_rate_itself_has_no_regret(seed, digits):
    """Also where the base rate equals a prediction on a grid, whatever the order of summation."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    y = rng.integers(0, 2, n)
    assert cb.u_calibration_error(y, np.full(n, y.mean())) <= 1e-12
    p = np.round(np.full(n, y.mean()), digits)
    w = rng.random(n) + 0.1
    assert cb.u_calibration_error(y, p, sample_weight=w) <= cb.decision_loss(y, p, sample_weight=w) + 1e-12


def test_on_continuous_predictions_it_means_something_where_the_decision_loss_does_not():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    assert cb.u_calibration_error(y, p) < 1e-3
    assert cb.monotone_regret(y, p) < 0.03
    assert cb.decision_loss(y, p) > 0.2
    assert cb.u_calibration_error(y, 1 - p) > 0.1
    assert cb.monotone_regret(y, p, folds=5) == pytest.approx(
        cb.decision_loss(y, p, recalibrator="isotonic", folds=5)
    )


def test_the_details_name_the_task():
    found = cb.measure(cb.Forecasts([0, 1, 1, 1], [0.5] * 4), "u-calibration")
    assert found.details["task"].thresholds.tolist() == [0.5]
    assert found.value == pytest.approx(0.5)
