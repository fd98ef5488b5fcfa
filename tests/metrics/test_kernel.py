"""Kernel calibration error against the double sum; random binning and truthfulness by expectation."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.smooth import kernel_by_double_sum
from samples import samples

import calibrant as cb
from calibrant.metrics import kernel as module

KERNELS = {
    "laplace": lambda h: lambda u, v: np.exp(-np.abs(u - v) / h),
    "gaussian": lambda h: lambda u, v: np.exp(-(np.minimum(np.abs(u - v) / h, 99.0) ** 2)),
}


@pytest.mark.parametrize("name", KERNELS)
@given(sample=samples(max_size=15), bandwidth=st.sampled_from([1.0, 1e-300, 1e-9, 0.05, 3.0, 1e300]))
def test_equals_the_double_sum(name, sample, bandwidth):
    f = sample.forecasts
    kernel = KERNELS[name](bandwidth)
    expected = kernel_by_double_sum(f.values, f.residuals, kernel)
    with np.errstate(over="raise", invalid="raise"):
        found = cb.kernel_calibration_error(f, kernel=name, bandwidth=bandwidth)
    assert found**2 == pytest.approx(expected**2, rel=1e-12, abs=1e-15)
    custom = cb.kernel_calibration_error(f, kernel=kernel)
    assert custom**2 == pytest.approx(expected**2, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("options", [{}, {"bandwidth": 0.1}, {"kernel": "gaussian"}, {"squared": True}])
@given(sample=samples())
def test_the_witness_attains_the_error(options, sample):
    f = sample.forecasts
    found = cb.measure(f, "kernel", **options)
    attained = float(f.residuals @ found.witness.weights)
    error = np.sqrt(found.value) if options.get("squared") else found.value
    assert attained == pytest.approx(error, abs=1e-9, rel=1e-6)


def test_blocks_do_not_change_the_value(monkeypatch):
    rng = np.random.default_rng(0)
    f = cb.Forecasts(rng.integers(0, 2, 300), rng.random(300))
    whole = cb.kernel_calibration_error(f, kernel="gaussian")
    monkeypatch.setattr(module, "BLOCK", 7 * 300)
    assert cb.kernel_calibration_error(f, kernel="gaussian") == pytest.approx(whole, rel=1e-13)


def test_large_data_agree_with_a_direct_sum_of_blocks():
    rng = np.random.default_rng(1)
    p = rng.random(30_000)
    f = cb.Forecasts(rng.random(30_000) < p**1.1, p)
    for bandwidth in (0.01, 1.0):
        blocked = cb.kernel_calibration_error(f[:3000], kernel=KERNELS["laplace"](bandwidth))
        assert cb.kernel_calibration_error(f[:3000], bandwidth=bandwidth) == pytest.approx(blocked, rel=1e-9)
    compiled = cb.kernel_calibration_error(f)
    total = f.residuals.sum()
    assert abs(total) * np.exp(-0.5) <= compiled <= np.abs(f.residuals).sum()


@settings(max_examples=25)
@given(sample=samples(max_size=6, weighted=False), bandwidth=st.sampled_from([0.2, 1.0]))
def test_the_square_is_truthful(sample, bandwidth):
    """E_y[kCE^2(r, y)] = kCE^2(r, p) + sum p (1 - p) / T^2, by enumerating every outcome."""
    truth = np.linspace(0.1, 0.9, len(sample.p))
    options = {"bandwidth": bandwidth, "squared": True}
    expected = 0.0
    for y in itertools.product([0, 1], repeat=len(truth)):
        chance = float(np.prod(np.where(y, truth, 1 - truth)))
        expected += chance * cb.kernel_calibration_error(y, sample.p, **options)
    noise = float(np.sum(truth * (1 - truth))) / len(truth) ** 2
    ideal = cb.kernel_calibration_error(truth, sample.p, **options)
    assert expected == pytest.approx(ideal + noise, abs=1e-12)


@pytest.mark.parametrize("bandwidth", [0.002, 0.1, 1.0])
def test_random_binning_is_unbiased(bandwidth):
    rng = np.random.default_rng(2)
    p = rng.random(200)
    f = cb.Forecasts(rng.random(200) < p**2, p)
    exact = cb.kernel_calibration_error(f, bandwidth=bandwidth, squared=True)
    found = cb.random_binning_estimate(f, bandwidth=bandwidth, draws=4_000, seed=5)
    assert abs(found.square - exact) < 4 * found.standard_error
    assert found.standard_error < 0.1 * exact


def test_random_binning_sums_the_squares_of_its_bins():
    from calibrant.metrics.kernel import _binned_square

    rng = np.random.default_rng(3)
    f = cb.Forecasts(rng.integers(0, 2, 50), rng.random(50).round(2))
    for width, shift in zip(10 ** rng.uniform(-4, 1, 60), rng.random(60), strict=True):
        bins = np.floor(f.values / width + shift)
        expected = sum(f.residuals[bins == k].sum() ** 2 for k in np.unique(bins))
        assert _binned_square(f, width, shift) == pytest.approx(expected, rel=1e-9)


def test_random_binning_repeats_from_its_recorded_seed():
    y, p = [0, 1, 1, 0], [0.1, 0.4, 0.45, 0.9]
    first = cb.random_binning_estimate(y, p, seed=None)
    assert cb.random_binning_estimate(y, p, seed=first.seed) == first
    assert cb.random_binning_estimate(y, p, seed=None) != first
    assert cb.random_binning_estimate(y, p) == cb.random_binning_estimate(y, p, seed=0)


def test_bad_options_are_refused():
    y, p = [0, 1], [0.2, 0.3]
    with pytest.raises(cb.CalibrantError, match="bandwidth must be a positive number"):
        cb.kernel_calibration_error(y, p, bandwidth=0.0)
    with pytest.raises(cb.CalibrantError, match="kernel must be one of laplace"):
        cb.kernel_calibration_error(y, p, kernel="laplas")
    with pytest.raises(cb.CalibrantError, match="kernel must return one finite number"):
        cb.kernel_calibration_error(y, p, kernel=lambda u, v: 1.0)
    with pytest.raises(cb.CalibrantError, match="bandwidth must not be combined with a kernel of your own"):
        cb.kernel_calibration_error(y, p, kernel=lambda u, v: np.exp(-np.abs(u - v)), bandwidth=0.1)
    with pytest.raises(cb.CalibrantError, match="positive definite"):
        cb.kernel_calibration_error(y, p, kernel=lambda u, v: -np.exp(-np.abs(u - v)))
    with pytest.raises(cb.CalibrantError, match="draws must be a whole number of at least 2"):
        cb.random_binning_estimate(y, p, draws=1)


def test_the_loss_says_what_it_needs(monkeypatch):
    from calibrant.losses import kernel_calibration_loss

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(cb.CalibrantError, match=r"calibrant\[torch\]"):
        kernel_calibration_loss(np.ones(2), np.ones(2))


def test_a_gaussian_form_that_rounds_below_0_is_0():
    """The exact form is at least 0; with a kernel that is nearly flat, residuals cancel down to rounding."""
    y = [0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0]
    p = [0.1, 0.5, 0.3, 0.3, 0.4, 0.5, 0.9, 0.5, 0.7, 0.7, 0.6, 0.5]
    assert cb.kernel_calibration_error(y, p, kernel="gaussian", bandwidth=1e3) < 1e-6
