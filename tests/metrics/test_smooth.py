"""Smooth and earth mover's error: equal to linear programs, proven by their witness, known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.smooth import earth_mover_by_linear_program, smooth_by_linear_program
from samples import samples

import calibrant as cb


@given(sample=samples(), lipschitz=st.sampled_from([1.0, 0.3, 2.0, 7.0]))
def test_smooth_equals_the_linear_program(sample, lipschitz):
    f = sample.forecasts
    expected = smooth_by_linear_program(f.values, f.residuals, lipschitz)
    assert cb.smooth_calibration_error(f, lipschitz=lipschitz) == pytest.approx(expected, abs=1e-8)


@settings(max_examples=100)
@given(sample=samples(max_size=9))
def test_earth_mover_equals_optimal_transport(sample):
    f = sample.forecasts
    expected = earth_mover_by_linear_program(f.values, f.outcomes, f.weights)
    assert cb.earth_mover_error(f) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("name", "constant"), [("smooth", 1.0), ("emd", 2.0)])
@given(sample=samples(max_size=60))
def test_the_witness_is_feasible_and_attains_the_value(name, constant, sample):
    f = sample.forecasts
    found = cb.measure(f, name)
    weights = found.witness.weights
    assert np.all(np.abs(weights) <= 1)
    assert np.all(np.abs(np.diff(weights)) <= constant * np.diff(f.values) + 1e-15)
    assert f.residuals @ weights == pytest.approx(found.value, abs=1e-14)
    assert found.upper - 1e-14 <= found.lower <= found.value <= found.upper
    assert found.exact


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        # three independent solvers agree on these up to 10^5
        (10**3, 0.018339923264536),
        (10**4, 0.00575421489508),
        (10**5, 0.01209310050658),
        (10**6, 0.009638214443054),
    ],
)
def test_known_values(n, expected):
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.99, n)
    y = rng.random(n) < p + 0.01
    found = cb.measure(cb.Forecasts(y, p), "smooth")
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.lower == pytest.approx(expected, abs=1e-12)


def test_table_1_of_the_truthfulness_paper():
    truth, values = [0.25, 0.75], {(0, 0): 0.5, (1, 1): 0.5, (0, 1): 0.0625, (1, 0): 0.1875}
    for outcomes, expected in values.items():
        assert cb.smooth_calibration_error(outcomes, truth) == pytest.approx(expected, abs=1e-15)


def test_a_steeper_weight_function_finds_the_expected_error():
    rng = np.random.default_rng(5)
    p = rng.random(200).round(2)
    f = cb.Forecasts(rng.random(200) < p, p)
    found = [cb.smooth_calibration_error(f, lipschitz=L) for L in (0.1, 1, 10, 200.001)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(cb.level_set_error(f), abs=1e-12)


@given(sample=samples(), lipschitz=st.sampled_from([1e9, 1e18, 1e308]))
def test_however_steep_no_weight_function_finds_more_than_the_expected_error(sample, lipschitz):
    f = sample.forecasts
    ece = cb.level_set_error(f, norm=1)
    found = cb.measure(f, "smooth", lipschitz=lipschitz)
    assert found.lower <= found.value <= ece + 1e-12
    assert cb.smooth_calibration_error(f, lipschitz=lipschitz) == pytest.approx(found.value, abs=1e-14)
    if np.all(lipschitz * np.diff(f.values) >= 2):
        assert found.lower == pytest.approx(ece, abs=1e-12)


@pytest.mark.parametrize("constant", [0, -1, np.nan, np.inf])
def test_a_bad_lipschitz_constant_is_refused(constant):
    with pytest.raises(cb.CalibrantError, match="lipschitz must be a positive"):
        cb.smooth_calibration_error([0, 1], [0.2, 0.3], lipschitz=constant)


def test_real_data_agree_with_the_linear_program_of_others(shared_data):
    """reference_values.csv holds smooth errors by an independent linear program."""
    import pandas as pd

    reference = pd.read_csv(shared_data / "reference_values.csv").set_index("case")
    column = reference["smooth_by_linear_program"]
    games = pd.read_parquet(shared_data / "fivethirtyeight_games.parquet")
    for league in ("NBA", "NFL", "NHL"):
        rows = games[(games["league"] == league) & games["y"].isin([0, 1])]
        found = cb.smooth_calibration_error(rows["y"], rows["p"])
        assert found == pytest.approx(column[f"538_games_{league}"], abs=1e-8)
    adult = pd.read_parquet(shared_data / "adult_predictions.parquet")
    for model in ("p_lgbm", "p_lgbm_iso"):
        found = cb.smooth_calibration_error(adult["y"], adult[model])
        assert found == pytest.approx(column[f"adult_{model}"], abs=1e-8)
    nets = pd.read_parquet(shared_data / "toplabel_resnet110_cifar100.parquet")
    found = cb.smooth_calibration_error(nets["correct"], nets["confidence"])
    assert found == pytest.approx(column["toplabel_resnet110_c100"], abs=1e-8)
