"""Convolved calibration error against mirror images and normal integrals, and against relplot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.smooth import convolved_by_images
from samples import samples

import calibrant as cb
from calibrant.metrics.convolved import ReflectedGaussian


@settings(max_examples=60)
@given(sample=samples(max_size=8), bandwidth=st.sampled_from([2e-4, 0.003, 0.05, 0.4, 2.0]))
def test_the_certificate_holds_the_error_at_a_bandwidth(sample, bandwidth):
    f = sample.forecasts
    expected = convolved_by_images(f.values, f.residuals, bandwidth)
    found = cb.measure(f, "convolved", bandwidth=bandwidth)
    assert found.lower - 1e-12 <= expected <= found.upper + 1e-12
    assert found.upper - found.lower <= 2e-3 * found.value + 1e-12


@settings(max_examples=60)
@given(sample=samples(max_size=8))
def test_the_certificate_holds_the_fixed_point(sample):
    """cECE_s falls with s, so cECE at `lower` must be at least `lower`, and at `upper` at most `upper`."""
    f = sample.forecasts
    found = cb.measure(f, "convolved")
    assert convolved_by_images(f.values, f.residuals, found.upper + 1e-9) <= found.upper + 2e-9
    if found.lower > 1e-9:
        assert convolved_by_images(f.values, f.residuals, found.lower) >= found.lower - 1e-9
        assert found.upper - found.lower <= 2e-3 * found.value


def test_residuals_of_one_sign_keep_their_total_whatever_the_bandwidth():
    p = np.array([0.0, 0.2, 1.0, 1.0, 1.0])
    for bandwidth in (0.001, 0.1, 3.0):
        found = cb.convolved_calibration_error(p**2 / 2, p, bandwidth=bandwidth)
        assert found == pytest.approx(np.mean(p - p**2 / 2), rel=1e-6)


def test_the_bound_on_the_grid_error_is_not_idle():
    """On coarse grids the error made is of the order of the bound, and within it."""
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(60))
    masses = rng.normal(size=60) / 60
    exact = convolved_by_images(p, masses, 0.03)
    for cells in (100, 300, 1_000):
        grid = ReflectedGaussian(p, masses, cells)
        error = abs(grid.absolute_mass(0.03) - exact)
        assert error <= grid.grid_error(0.03)
        assert error >= grid.grid_error(0.03) / 1_000


def test_tiny_errors_are_bracketed():
    found = cb.measure(cb.Forecasts([0, 0.100001], [0, 0.1]), "convolved")
    assert 0 <= found.lower <= 5e-7 <= found.upper + 1e-15
    assert found.upper <= 1e-6


def test_agrees_with_relplot_on_real_data(shared_data):
    """relplot searches the bandwidth in steps of 2^-10; at the step it found we agree to its mesh of 200.

    Only cases without predictions of exactly 0 or 1 are compared: relplot counts their mass half.
    """
    import pandas as pd

    reference = pd.read_csv(shared_data / "reference_values.csv").set_index("case")["relplot.smECE"]
    games = pd.read_parquet(shared_data / "fivethirtyeight_games.parquet")
    games = games[games["y"].isin([0, 1])]
    weather = pd.read_csv(shared_data / "weather_niamey_2016.csv")
    adult = pd.read_parquet(shared_data / "adult_predictions.parquet")
    cases = {f"538_games_{k}": (g["y"], g["p"]) for k, g in games.groupby("league")}
    cases |= {f"niamey_{k}": (weather["obs"], weather[k]) for k in ("EMOS", "EPC", "Logistic")}
    cases["adult_p_lgbm"] = (adult["y"], adult["p_lgbm"])
    shared = cases.keys() & reference.keys()
    assert len(shared) == 7
    for name in shared:
        y, p = cases[name]
        f = cb.Forecasts(y, p)
        value = cb.convolved_calibration_error(f)
        assert value == pytest.approx(reference[name], abs=2**-10), name
        step = np.ceil(value * 2**10) / 2**10
        found = cb.convolved_calibration_error(f, bandwidth=step)
        assert found == pytest.approx(reference[name], abs=2e-5), name


def test_known_value_of_relplot():
    """relplot 1.0.3 gives 0.03156 on this sample, at bandwidth 33 / 1024."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.99, 1000)
    y = rng.random(1000) < p + 0.01
    assert cb.convolved_calibration_error(y, p, bandwidth=33 / 1024) == pytest.approx(0.03156, abs=1e-5)


@given(sample=samples())
def test_the_curve_integrates_to_the_error(sample):
    f = sample.forecasts
    curve = cb.smoothed_reliability(f, bandwidth=0.05)
    gap = np.nan_to_num(np.abs(curve.outcome - curve.prediction)) * curve.density
    integral = np.trapezoid(gap, curve.prediction)
    assert integral == pytest.approx(cb.convolved_calibration_error(f, bandwidth=0.05), abs=2e-4)
    assert np.trapezoid(curve.density, curve.prediction) == pytest.approx(1.0, abs=1e-3)


def test_the_curve_finds_the_bias_and_says_where_it_knows_nothing():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.2, 0.4, 20_000)
    curve = cb.smoothed_reliability(rng.random(20_000) < p + 0.1, p)
    middle = (curve.prediction > 0.25) & (curve.prediction < 0.35)
    np.testing.assert_allclose(curve.outcome[middle], curve.prediction[middle] + 0.1, atol=0.02)
    assert curve.bandwidth == pytest.approx(0.1, abs=0.01)
    narrow = cb.smoothed_reliability(rng.random(20_000) < p + 0.1, p, bandwidth=0.01)
    assert np.all(np.isnan(narrow.outcome[narrow.prediction > 0.6]))


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.inf, np.nan])
def test_a_bad_bandwidth_is_refused(bandwidth):
    for function in (cb.convolved_calibration_error, cb.smoothed_reliability):
        with pytest.raises(cb.CalibrantError, match="bandwidth must be"):
            function([0, 1], [0.2, 0.3], bandwidth=bandwidth)


def test_at_huge_bandwidths_only_the_mean_residual_is_left():
    y, p = [0, 1, 1, 0, 1], [0.2, 0.4, 0.8, 0.6, 0.5]
    for bandwidth in (1e3, 1e160, 1e300):
        found = cb.convolved_calibration_error(y, p, bandwidth=bandwidth)
        assert found == pytest.approx(abs(cb.calibration_in_the_large(y, p)), rel=1e-12)
        assert np.isfinite(cb.smoothed_reliability(y, p, bandwidth=bandwidth).outcome).all()
