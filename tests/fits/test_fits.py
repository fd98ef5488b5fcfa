"""Fits on levels against refits, bounded least squares and general optimisers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import fits as oracle
from samples import samples

from calibrant import Forecasts, smooth_calibration_error
from calibrant.fits.isotonic import bounded_slope, centered_isotonic, isotonic, venn_abers
from calibrant.fits.levels import CLIPS, Levels, levels_of_sorted, logit, pooled, worthwhile_clips
from calibrant.fits.logistic import logistic, shows_no_slope
from calibrant.fits.spline import SplineFit, spline
from calibrant.kernels import fits as bounded_kernel
from calibrant.kernels import fits as pairs_kernel
from calibrant.recalibration.methods.binning import (
    bin_rates,
    equal_mass_edges,
    simultaneous_tolerance,
)

FOUR = Levels.of(Forecasts([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]))


def levels_of(sample, frequency=False):
    return Levels.of(sample.forecasts, frequency=frequency)


# Levels


def test_weights_become_the_effective_number_of_records():
    f = Forecasts([0, 1, 1], [0.1, 0.5, 0.9], sample_weight=[1, 2, 1])
    assert Levels.of(f).total == pytest.approx(16 / 6)
    assert Levels.of(f, frequency=True).total == 4
    scaled = Forecasts([0, 1, 1], [0.1, 0.5, 0.9], sample_weight=[10, 20, 10])
    assert Levels.of(scaled).weights == pytest.approx(Levels.of(f).weights)


@given(samples())
def test_merged_records_are_the_levels_of_forecasts(sample):
    order = np.argsort(sample.p)
    w = np.ones(len(sample.p)) if sample.w is None else sample.w
    ours = levels_of_sorted((sample.p + 0.0)[order], sample.y[order].astype(float), w[order])
    x, r, mass = oracle.merge(sample.p, sample.y, w)
    assert ours.values.tolist() == x.tolist()
    assert ours.rates == pytest.approx(r)
    assert ours.weights == pytest.approx(mass)


@given(samples(), st.integers(1, 6))
def test_pooling_keeps_all_sums(sample, cells):
    levels = levels_of(sample)
    places, cell = pooled(levels.values, levels, cells)
    assert len(cell) <= max(cells, 1) or len(cell) == len(levels)
    assert cell.total == pytest.approx(levels.total)
    assert cell.ones.sum() == pytest.approx(levels.ones.sum())
    assert cell.weights @ places == pytest.approx(levels.weights @ levels.values)


# Isotonic


@given(samples(max_size=12))
def test_isotonic_is_the_max_min_formula(sample):
    levels = levels_of(sample)
    expected = oracle.isotonic_by_max_min(levels.rates, levels.weights)
    assert isotonic(levels, honest_ends=False).rates == pytest.approx(expected, abs=1e-9)


@given(samples())
def test_honest_ends_keep_the_order_and_leave_the_inside(sample):
    levels = levels_of(sample)
    raw, honest = isotonic(levels, honest_ends=False).rates, isotonic(levels).rates
    assert (np.diff(honest) >= 0).all()
    assert honest.min() > 0
    assert honest.max() < 1
    inside = (raw > honest.min()) & (raw < honest.max())
    assert honest[inside] == pytest.approx(raw[inside])
    assert abs(levels.weights @ (honest - raw)) <= 1.0  # at most half a record per end


def test_isotonic_known_answers():
    assert isotonic(FOUR, honest_ends=False).rates.tolist() == [0, 0.5, 0.5, 1]
    assert isotonic(FOUR).rates.tolist() == [0.25, 0.5, 0.5, 0.75]
    centered = centered_isotonic(FOUR, honest_ends=False)
    assert centered.values == pytest.approx([0.2, 0.5, 0.8])
    assert centered.rates.tolist() == [0, 0.5, 1]
    assert centered_isotonic(FOUR).rates.tolist() == [0.25, 0.5, 0.75]


@given(samples())
def test_centered_knots_rise_strictly(sample):
    knots = centered_isotonic(levels_of(sample), honest_ends=False)
    assert (np.diff(knots.values) > 0).all()
    assert (np.diff(knots.rates) > 0).all()


# Bounded slope


@settings(max_examples=300)
@given(samples(max_size=25), st.sampled_from([0.0, 0.3, 1.0, 2.0, 7.0]))
def test_bounded_slope_is_bounded_least_squares(sample, slope):
    levels = levels_of(sample)
    fit = bounded_slope(levels, slope=slope).rates
    allowed = slope * np.diff(levels.values)
    assert (np.diff(fit) >= -1e-12).all()
    assert (np.diff(fit) <= allowed + 1e-12).all()
    expected = oracle.bounded_slope_by_least_squares(levels.values, levels.rates, levels.weights, slope)
    cost = levels.weights @ (fit - levels.rates) ** 2
    least = levels.weights @ (expected - levels.rates) ** 2
    assert cost <= least + 1e-11 * levels.total


@pytest.mark.parametrize(
    ("values", "rates", "slope", "expected"),
    [
        ([0, 1], [0, 1], 0.5, [0.25, 0.75]),
        ([0, 0.5, 1], [1, 0, 1], 2, [0.5, 0.5, 1]),
        ([0.4, 0.5, 0.6], [0, 0, 1], 2, [2 / 15, 5 / 15, 8 / 15]),
        ([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], 2, [0.1, 0.5, 0.5, 0.9]),
        ([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], 1, [0.3, 0.5, 0.5, 0.7]),
    ],
)
def test_bounded_slope_known_answers(values, rates, slope, expected):
    levels = Levels(np.array(values, float), np.array(rates, float), np.ones(len(values)))
    assert bounded_slope(levels, slope=slope).rates == pytest.approx(expected, abs=1e-12)


@given(samples())
def test_a_boundless_slope_is_isotonic_and_none_is_the_mean(sample):
    levels = levels_of(sample)
    near = np.diff(levels.values).min(initial=1.0)
    if near > 1e-6:
        assert bounded_slope(levels, slope=1e9).rates == pytest.approx(
            isotonic(levels, honest_ends=False).rates, abs=1e-6
        )
    assert bounded_slope(levels, slope=0.0).rates == pytest.approx(
        np.full(len(levels), levels.base_rate), abs=1e-9
    )


@settings(max_examples=500)
@given(samples(max_size=40))
def test_post_processing_gap_lies_between_the_square_and_the_double_of_the_smooth_error(sample):
    """Błasiok, Gopalan, Hu and Nakkiran (2023): smCE^2 <= gain of the best gentle map <= 2 smCE."""
    levels, forecasts = levels_of(sample), sample.forecasts
    fit = bounded_slope(levels, slope=2.0).rates
    before, after = (levels.values - levels.rates) ** 2, (fit - levels.rates) ** 2
    gain = float(levels.weights @ (before - after)) / levels.total
    smooth = smooth_calibration_error(forecasts)
    assert smooth**2 - 1e-12 <= gain <= 2 * smooth + 1e-12


@given(samples(), st.sampled_from([0.3, 2.0]))
def test_bounded_slope_plain_and_compiled_agree(sample, slope):
    levels = levels_of(sample)
    args = (levels.values, levels.rates, levels.weights, slope)
    fast = bounded_kernel.bounded_slope_rates.machine_code()(*args)
    assert fast == pytest.approx(bounded_kernel.bounded_slope_rates.plain(*args), abs=1e-12)


# Venn-Abers


@settings(max_examples=400)
@given(samples(max_size=14))
def test_venn_abers_pairs_are_refits(sample):
    levels = levels_of(sample)
    if_zero, if_one = venn_abers(levels)
    between = (levels.values[1:] + levels.values[:-1]) / 2
    for query in np.concatenate((levels.values, between, [0.0, 1.0])):
        low, high = oracle.venn_abers_by_refit(levels.values, levels.rates, levels.weights, query)
        assert if_zero[np.searchsorted(levels.values, query, "right")] == pytest.approx(low, abs=1e-9)
        assert if_one[np.searchsorted(levels.values, query, "left")] == pytest.approx(high, abs=1e-9)


@given(samples())
def test_venn_abers_pairs_enclose_isotonic(sample):
    levels = levels_of(sample)
    if_zero, if_one = venn_abers(levels)
    fit = isotonic(levels, honest_ends=False).rates
    assert (if_zero[1:] <= fit + 1e-9).all()
    assert (fit <= if_one[:-1] + 1e-9).all()
    assert (np.diff(if_zero) >= 0).all()
    assert (np.diff(if_one) >= 0).all()
    assert if_zero.max() < 1
    assert if_one.min() > 0


@given(samples())
def test_venn_abers_plain_and_compiled_agree(sample):
    levels = levels_of(sample)
    weights = np.concatenate(([0.0], np.cumsum(levels.weights)))
    ones = np.concatenate(([0.0], np.cumsum(levels.ones)))
    for label in (0.0, 1.0):
        fast = pairs_kernel.values_of_one_more.machine_code()(weights, ones, label)
        plain = pairs_kernel.values_of_one_more.plain(weights, ones, label)
        assert fast == pytest.approx(plain, abs=1e-14)


# Logistic family


def test_platt_known_answer():
    rows = Forecasts([0, 0, 0, 1, 1, 1, 1, 0], [0.2] * 4 + [0.8] * 4)
    rates = Forecasts([0.25, 0.75], [0.2, 0.8], sample_weight=[4, 4])
    for forecasts in (rows, rates):
        fit = logistic(Levels.of(forecasts, frequency=True), "platt", shrink=None)
        assert fit.intercept == pytest.approx(0, abs=1e-9)
        assert fit.low == fit.high == pytest.approx(0.7924812503605781, abs=1e-9)


@settings(max_examples=60)
@given(samples(min_size=4), st.sampled_from(["shift", "temperature", "platt"]), st.sampled_from([0.1, 10.0]))
def test_shrunk_fits_are_penalised_maximum_likelihood(sample, family, width):
    levels = levels_of(sample)
    if shows_no_slope(levels):
        return
    fit = logistic(levels, family, shrink=width, clip=1e-3)
    ell = logit(levels.values, 1e-3)
    scale = max(1e-3, float(np.sqrt(levels.weights @ ell**2 / levels.total)))
    one, zero = np.ones(len(ell)), np.zeros(len(ell))
    columns, offset, centre, scales = {
        "shift": ([one], ell, [0.0], [1.0]),
        "temperature": ([ell], zero, [1.0], [scale]),
        "platt": ([one, ell], zero, [0.0, 1.0], [1.0, scale]),
    }[family]
    precision = np.diag(np.square(scales)) / width**2
    found = oracle.penalised_logistic(
        columns, offset, levels.rates, levels.weights, np.array(centre), precision
    )
    ours = {"shift": [fit.intercept], "temperature": [fit.low], "platt": [fit.intercept, fit.low]}[family]
    assert offset + np.column_stack(columns) @ ours == pytest.approx(
        offset + np.column_stack(columns) @ found, abs=1e-4
    )


@settings(max_examples=40)
@given(samples(min_size=2))
def test_beta_powers_are_never_negative(sample):
    fit = logistic(levels_of(sample), "beta")
    assert fit.low >= 0
    assert fit.high >= 0
    assert np.isfinite([fit.intercept, fit.low, fit.high]).all()


def test_beta_equals_its_own_law():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 200_000)
    q = 1 / (1 + np.exp(-(0.3 + 1.4 * np.log(p) - 0.7 * np.log1p(-p))))
    fit = logistic(Levels.of(Forecasts(q, p)), "beta", shrink=None)
    assert (fit.intercept, fit.low, fit.high) == pytest.approx((0.3, 1.4, 0.7), abs=1e-8)


def test_pooling_does_not_change_the_fit():
    rng = np.random.default_rng(1)
    p = rng.random(30_000)
    y = rng.random(30_000) < p**1.3
    levels = Levels.of(Forecasts(y, p))
    fit = logistic(levels, "platt", shrink=None, clip=1e-7)
    ell = logit(levels.values, 1e-7)
    q = 1 / (1 + np.exp(-fit.intercept - fit.low * ell))
    gradient = [levels.weights @ (q - levels.rates), (levels.weights * ell) @ (q - levels.rates)]
    assert np.abs(gradient).max() < 1e-9 * levels.total


def test_clips_that_change_nothing_are_skipped():
    assert worthwhile_clips(FOUR) == (1e-7,)
    assert worthwhile_clips(Levels.of(Forecasts([0, 1], [0.0, 0.9]))) == (*CLIPS, 0.05)
    assert worthwhile_clips(Levels.of(Forecasts([1, 1], [0.0, 0.9]))) == (0.05,)
    many = Levels(np.array([0.0, 0.9]), np.array([0.1, 0.9]), np.array([5e5, 5e5]))
    assert worthwhile_clips(many) == (0.5 / (1e6 + 1), 1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.05)


# Spline


@settings(max_examples=25)
@given(samples(min_size=5))
def test_spline_is_finite_and_rises(sample):
    fit = spline(levels_of(sample))
    if isinstance(fit, SplineFit):
        assert np.isfinite(fit.shifts).all()
        assert (np.diff(fit.knots + fit.shifts) >= -1e-12).all()
        assert (np.diff(fit.knots) > 0).all()


def test_spline_finds_a_bend():
    rng = np.random.default_rng(3)
    p = rng.random(200_000)
    ell = np.log(p / (1 - p))
    q = 1 / (1 + np.exp(-(ell + 0.8 * np.abs(ell) - 1)))
    fit = spline(Levels.of(Forecasts(rng.random(200_000) < q, p)))
    at = np.linspace(-2, 2, 50)
    fitted = at + np.interp(at, fit.knots, fit.shifts)
    assert np.abs(fitted - (at + 0.8 * np.abs(at) - 1)).max() < 0.1


# Histogram


def test_histogram_tolerance_known_answer():
    assert simultaneous_tolerance(99, 10, 0.1) == pytest.approx(0.16358232978818182, abs=1e-15)


def test_records_on_an_edge_are_left_out():
    levels = Levels(np.arange(1, 11) / 10, np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 1.0]), np.ones(10))
    edges = equal_mass_edges(levels, 2)
    assert edges.tolist() == [0.5]
    assert bin_rates(levels, edges, without_edges=True).rates.tolist() == [0, 0.2]
    assert bin_rates(levels, edges, without_edges=False).rates.tolist() == [0.2, 0.2]
