"""Every simple functional equals its slow oracle, on thousands of ugly samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from oracles import simple
from samples import Sample, samples

import calibrant as cb
from calibrant.metrics.scores import isotonic_curve

CASES = [
    (cb.level_set_error, simple.ece, {}),
    (cb.level_set_error, simple.ece, {"norm": 2}),
    (cb.level_set_error, simple.ece, {"norm": 3, "root": True}),
    (cb.level_set_error, simple.ece, {"norm": np.inf}),
    (cb.binned_calibration_error, simple.binned, {}),
    (cb.binned_calibration_error, simple.binned, {"norm": 2, "bins": 4}),
    (cb.binned_calibration_error, simple.binned, {"norm": "max", "bins": 20}),
    (cb.binned_calibration_error, simple.binned, {"bins": 4, "strategy": "quantile"}),
    (cb.binned_calibration_error, simple.binned, {"bins": [0, 0.25, 0.3, 1]}),
    (cb.kolmogorov_smirnov_error, simple.ks, {}),
    (cb.kuiper_error, simple.kuiper, {}),
    (cb.averaged_two_bin_error, simple.atb, {}),
    (cb.averaged_two_bin_error, simple.atb, {"norm": 1}),
    (cb.binned_squared_error, simple.ubse, {}),
    (cb.binned_squared_error, simple.ubse, {"bins": 3, "strategy": "uniform"}),
    (cb.brier_score, simple.brier, {}),
    (cb.log_loss, simple.log_loss, {}),
    (cb.miscalibration, simple.miscalibration, {}),
    (cb.miscalibration, simple.miscalibration, {"score": "log"}),
    (cb.calibration_in_the_large, simple.in_the_large, {}),
    (cb.integrated_calibration_index, simple.ici, {}),
]


@pytest.mark.parametrize(("fast", "slow", "options"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
@given(sample=samples())
def test_equals_its_oracle(fast, slow, options, sample):
    assert fast(sample.forecasts, **options) == pytest.approx(slow(sample, **options), abs=1e-10)


@given(sample=samples())
def test_the_c_statistic_compares_every_event_with_every_other_record(sample):
    events = float(np.sum(sample.weights * sample.y))
    if 0 < events < float(np.sum(sample.weights)):
        assert cb.c_statistic(sample.forecasts) == pytest.approx(simple.c_statistic(sample), abs=1e-9)
    else:
        with pytest.raises(cb.CalibrantError, match="needs both outcomes"):
            cb.c_statistic(sample.forecasts)


@given(sample=samples())
def test_the_ratio_of_observed_to_expected_events(sample):
    if sample.p.max() > 0:
        ratio = cb.observed_expected_ratio(sample.forecasts)
        assert ratio == pytest.approx(simple.observed_expected(sample), rel=1e-9)
    else:
        with pytest.raises(cb.CalibrantError, match="needs a prediction above 0"):
            cb.observed_expected_ratio(sample.forecasts)


def test_the_last_quantile_of_many_gaps_is_the_largest():
    p = (np.arange(100_000) + 0.5) / 100_000  # of which 1 / 100,000 each add up to less than 1 - 1e-12
    f = cb.Forecasts(np.random.default_rng(0).random(len(p)) < p, p)
    assert np.cumsum(f.weights)[-1] < 1 - 1e-12
    largest = np.abs(isotonic_curve(f) - f.values).max()
    assert cb.integrated_calibration_index(f, quantile=1.0) == largest


@pytest.mark.parametrize("quantile", [0.5, 0.9])
@given(sample=samples())
def test_quantiles_of_the_calibration_gap(quantile, sample):
    found = cb.integrated_calibration_index(sample.forecasts, quantile=quantile)
    around = [simple.ici(sample, min(1.0, max(0.0, quantile + d))) for d in (-1e-9, 1e-9)]
    assert around[0] - 1e-10 <= found <= around[1] + 1e-10


@given(sample=samples(fractional=False, weighted=False, min_size=4))
@settings(max_examples=100)
def test_cox_fit_zeroes_the_score_equations(sample):
    f = sample.forecasts
    with np.errstate(divide="ignore"):
        logit = np.clip(np.log(sample.p) - np.log1p(-sample.p), -27.6, 27.6)
    try:
        fit = cb.cox_calibration(f)
    except cb.CalibrantError:
        ones, zeros = logit[sample.y == 1], logit[sample.y == 0]
        single = len(ones) == 0 or len(zeros) == 0 or f.levels < 2
        assert single or ones.min() >= zeros.max() or ones.max() <= zeros.min()
        return
    rate = 1 / (1 + np.exp(-np.clip(fit.intercept + fit.slope * logit, -700, 700)))
    assume(abs(fit.slope) < 50)  # nearly separated data: the likelihood is flat
    assert np.sum(sample.y - rate) == pytest.approx(0, abs=1e-6)
    assert np.sum((sample.y - rate) * logit) == pytest.approx(0, abs=1e-4)


def test_cox_fit_of_many_levels_zeroes_the_score_equations():
    rng = np.random.default_rng(2)
    logit = rng.normal(size=30_000)
    y = rng.random(30_000) < 1 / (1 + np.exp(-0.3 - 0.7 * logit))
    fit = cb.cox_calibration(y, 1 / (1 + np.exp(-logit)))
    surplus = y - 1 / (1 + np.exp(-fit.intercept - fit.slope * logit))
    assert np.mean(surplus) == pytest.approx(0, abs=1e-10)
    assert np.mean(surplus * logit) == pytest.approx(0, abs=1e-10)


def test_slope_and_intercept_are_those_of_the_cox_fit():
    y, p = [0, 1, 0, 1, 1], [0.2, 0.2, 0.8, 0.8, 0.9]
    fit = cb.cox_calibration(y, p)
    slope = cb.measure(cb.Forecasts(y, p), "slope")
    assert (slope.value, slope.details["intercept"]) == (fit.slope, fit.intercept)
    assert cb.calibration_intercept(y, p) == fit.intercept_at_slope_one
    for function in (cb.cox_calibration, cb.calibration_slope, cb.calibration_intercept):
        with pytest.raises(cb.CalibrantError, match="both outcomes"):
            function([1, 1], [0.2, 0.3])


@given(sample=samples())
@settings(max_examples=40)  # low-degree solves linear programs
def test_witnesses_attain_the_value(sample):
    f = sample.forecasts
    for name in ("level-set", "ks", "kuiper", "low-degree"):
        found = cb.measure(f, name)
        assert float(f.residuals @ found.witness.weights) == pytest.approx(found.value, abs=1e-10)


@given(sample=samples())
@settings(max_examples=30)
def test_low_degree_error_is_bracketed_by_a_fine_grid(sample):
    """A program on many points bounds it from above; by Ehlich and Zeller it is off by a known factor."""
    from numpy.polynomial import chebyshev
    from scipy.optimize import linprog

    degree, points = 3, 400
    f = sample.forecasts
    moments = f.residuals @ chebyshev.chebvander(2 * f.values - 1, degree)
    rows = chebyshev.chebvander(np.cos(np.pi * np.arange(points + 1) / points), degree)
    bound = np.ones(2 * len(rows))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    both = np.vstack([rows, -rows])
    program = linprog(-moments, A_ub=both, b_ub=bound, bounds=(None, None), options=tight).fun
    found = cb.measure(f, "low-degree", degree=degree)
    assert found.lower - 1e-8 <= -program
    assert -program * np.cos(np.pi * degree / (2 * points)) <= found.upper + 1e-8
    assert found.upper - found.lower <= 1e-8
    assert np.all(np.abs(found.witness.weights) <= 1 + 1e-9)


def test_debiased_error_removes_the_bias_of_a_calibrated_forecast():
    rng = np.random.default_rng(1)
    p = rng.random((300, 400))
    y = rng.random(p.shape) < p
    plain = np.mean([cb.binned_calibration_error(*row, norm=2) ** 2 for row in zip(y, p, strict=True)])
    debiased = np.mean(
        [cb.binned_calibration_error(*row, norm=2, debiased=True) ** 2 for row in zip(y, p, strict=True)]
    )
    assert debiased < plain / 3


def test_binned_options_that_do_not_fit_are_refused():
    f = Sample(np.array([0, 1]), np.array([0.2, 0.8]), None).forecasts
    for options in (
        {"debiased": True},
        {"add_width": True, "norm": 2},
        {"bins": 0},
        {"strategy": "x"},
        {"strategy": "x", "bins": [0, 0.5, 1]},
        {"norm": 7},
    ):
        with pytest.raises(cb.CalibrantError, match=r"must|needs"):
            cb.binned_calibration_error(f, **options)
    for edges in ([0.1, 1], [0, 0.5, 0.5, 1], [0.0]):
        with pytest.raises(cb.CalibrantError, match="bins"):
            cb.binned_calibration_error(f, bins=edges)


def test_a_weight_function_of_the_wrong_shape_is_refused():
    with pytest.raises(cb.CalibrantError, match="one finite number per prediction"):
        cb.weighted_calibration_error([0, 1], [0.2, 0.8], weight_function=lambda v: v[:1])


def test_singletons_draw_a_warning_and_ties_do_not():
    p = np.linspace(0.01, 0.99, 100)
    y = np.arange(100) % 2
    with pytest.warns(cb.LevelSetWarning, match="mostly noise"):
        cb.level_set_error(y, p)
    cb.level_set_error(y, p.round(1))
