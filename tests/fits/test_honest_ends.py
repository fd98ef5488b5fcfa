"""Honest ends of isotonic maps, and how far predictions of exactly 0 and 1 are moved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import fits as oracle
from recalibration.laws import GRID, fit, gridded
from samples import samples

import calibrant as cb
from calibrant.fits.isotonic import bounded_slope, centered_isotonic, honest_range, isotonic
from calibrant.fits.levels import (
    CLIPS,
    WIDE_CLIPS,
    Levels,
    chance_of_first_miss,
    end_limit,
    likeliest_limit,
    worthwhile_clips,
)

KINDS = ["isotonic", "centered-isotonic", "bounded-slope"]
kinds = st.sampled_from(KINDS)


def levels_of(sample):
    return Levels.of(sample.forecasts)


def weighted(rates, weights):
    values = np.arange(1, len(rates) + 1) / 10
    return Levels(values, np.array(rates, float), np.array(weights, float))


@given(samples(max_size=12))
def test_honest_range_is_its_definition(sample):
    levels = levels_of(sample)
    rates = oracle.isotonic_by_max_min(levels.rates, levels.weights)
    low, high = honest_range(rates, levels.weights)
    assert low == pytest.approx(oracle.honest_low_end(rates, levels.weights), abs=1e-12)
    assert high == pytest.approx(1 - oracle.honest_low_end(1 - rates, levels.weights), abs=1e-12)
    assert 0 < low <= 0.5 <= high < 1
    assert isotonic(levels).rates == pytest.approx(np.clip(rates, low, high), abs=1e-9)


def test_known_ends():
    assert isotonic(weighted([0, 1], [9, 4])).rates.tolist() == [0.05, 0.9]
    assert isotonic(weighted([0, 0.1, 1], [1, 10, 4])).rates.tolist() == [0.1, 0.1, 0.9]  # not above the next
    assert isotonic(weighted([0, 1e-9, 0.5], [4, 5, 4])).rates[:2].tolist() == [0.05, 0.05]
    assert isotonic(weighted([0, 0.06, 0.5], [4, 5, 4])).rates[:2].tolist() == [0.06, 0.06]
    assert isotonic(weighted([0, 0.3, 0.5], [4, 5, 4])).rates[:2].tolist() == [0.1, 0.3]
    centered = centered_isotonic(weighted([0, 1e-9, 0.5], [4, 4, 4]))
    assert centered.values == pytest.approx([0.15, 0.3])
    assert centered.rates == pytest.approx([0.5 / 9, 0.5])


@given(samples())
def test_bounded_slope_keeps_its_bound_with_honest_ends(sample):
    levels = levels_of(sample)
    fitted = bounded_slope(levels, honest_ends=True).rates
    steps = np.diff(fitted)
    assert (steps >= 0).all()
    assert (steps <= 2 * np.diff(levels.values) + 1e-12).all()
    assert 0 < fitted.min() <= fitted.max() < 1


@given(kinds, gridded(min_size=1))
def test_a_trace_of_an_outcome_moves_nothing(kind, data):
    y, p = data
    trace = np.where(y == 0, 1e-300, y)
    plain, traced = (fit(o, p, method=kind, ends="kt").predict(GRID) for o in (y, trace))
    assert traced == pytest.approx(plain, abs=1e-12)


@given(st.sampled_from(["isotonic", "bounded-slope"]), samples(max_size=12), st.floats(0, 1e-6))
def test_ends_move_no_more_than_outcomes_do(kind, sample, step):
    """Isotonic rates move by no more than the outcomes; so do the estimates of the ends."""
    nearer = sample.y + step * (0.5 - sample.y)
    options = {"sample_weight": sample.w, "method": kind, "ends": "kt"}
    one, other = (fit(outcomes, sample.p, **options) for outcomes in (sample.y, nearer))
    assert other.predict(GRID) == pytest.approx(one.predict(GRID), abs=step + 1e-9)


@given(kinds, gridded())
def test_records_at_the_ends_count_by_frequency(kind, data):
    y, p = data
    counts = 1 + np.arange(len(p)) % 4
    options = {"method": kind, "ends": "kt", "weights": "frequency"}
    weighted_map = fit(y, p, sample_weight=counts, **options).predict(GRID)
    repeated = fit(np.repeat(y, counts), np.repeat(p, counts), **options).predict(GRID)
    assert weighted_map == pytest.approx(repeated, abs=1e-9)


@given(gridded())
def test_rounding_does_not_decide_how_blocks_are_pooled(data):
    """Weights that are equal but for their last digits leave equal rates equal."""
    y, p = data
    nearly = 1 + np.spacing(1.0) * (np.arange(len(p)) % 3)
    for ends in ("kt", "raw"):
        plain, other = (
            fit(y, p, method="centered-isotonic", ends=ends, sample_weight=w).predict(GRID)
            for w in (None, nearly)
        )
        assert other == pytest.approx(plain, abs=1e-9)


def cost_if_never_wrong(levels, limit):
    """How much moving predictions off 0 and 1 costs per record if the nearer outcome always occurs."""
    distance = np.minimum(levels.values, 1 - levels.values)
    return float(levels.weights @ np.maximum(limit - distance, 0)) / levels.total


@given(
    st.lists(
        st.sampled_from([0.0, 1e-4, 1e-3, 0.01, 0.3, 0.99, 0.9999, 1.0]), min_size=1, max_size=8, unique=True
    ),
    st.lists(st.sampled_from([0.5, 1.0, 7.0, 40.0, 900.0]), min_size=8, max_size=8),
)
def test_a_limit_moves_predictions_by_the_misses_that_certain_ones_make(values, weights):
    values = np.sort(values)
    levels = Levels(values, np.rint(values), np.array(weights[: len(values)]))
    limit = end_limit(levels)
    if values[0] > 0 and values[-1] < 1:
        assert limit == 0
        return
    certain = float(levels.weights @ ((values == 0) | (values == 1)))
    misses = certain * chance_of_first_miss(certain)
    assert 0 < limit <= 0.05
    assert cost_if_never_wrong(levels, limit) <= misses / levels.total * (1 + 1e-9)
    if limit < 0.05:  # the mean rate of misses of all that it moves
        assert cost_if_never_wrong(levels, limit * 1.001) > misses / levels.total


def test_the_chance_of_a_first_miss_is_its_integral():
    """Half the prior says never; the other half is uniform between the rates of a coin and of certainty."""
    rates = np.linspace(0.5, 1, 100_001)
    for right in (0, 1, 4, 60):
        once, again = (np.trapezoid(2 * rates**k, rates) for k in (right, right + 1))
        assert chance_of_first_miss(right) == pytest.approx((once - again) / (1 + once), abs=1e-9)
    assert chance_of_first_miss(0) == pytest.approx(1 / 8)
    assert chance_of_first_miss(1e6) == pytest.approx(2e-12, rel=1e-4)
    assert max(right * chance_of_first_miss(right) for right in range(2000)) < 0.18


def test_known_limits_of_predictions():
    few_at_the_ends = Levels(np.array([0.0, 0.5]), np.array([0.0, 0.5]), np.array([4.0, 96.0]))
    assert end_limit(few_at_the_ends) == pytest.approx(chance_of_first_miss(4))
    most_at_the_ends = Levels(np.array([0.0, 0.5, 1.0]), np.array([0, 0.5, 1]), np.array([30.0, 40, 30]))
    assert end_limit(most_at_the_ends) == pytest.approx(chance_of_first_miss(60))
    assert likeliest_limit(most_at_the_ends) == end_limit(most_at_the_ends)
    near = Levels(np.array([0.0, 0.004, 0.5]), np.array([0.0, 0, 0.5]), np.array([4.0, 6, 90]))
    assert end_limit(near) == pytest.approx((4 * chance_of_first_miss(4) + 6 * 0.004) / 10)
    missed = Levels(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.5, 1]), np.array([30.0, 40, 30]))
    assert end_limit(missed) == pytest.approx(0.5 / 101)
    assert set(WIDE_CLIPS) <= set(worthwhile_clips(missed))
    assert worthwhile_clips(most_at_the_ends) == tuple(sorted((*CLIPS, chance_of_first_miss(60))))
    assert likeliest_limit(missed) == 0.05


@given(st.sampled_from(["shift", "temperature", "platt", "beta", "spline"]), gridded())
def test_no_map_comes_closer_to_certainty_than_certain_predictions_that_were_right_allow(method, data):
    y, p = data
    p = np.concatenate(([0.0, 0.0, 1.0], np.clip(p, 0.1, 0.9)))
    y = np.concatenate(([0, 0, 1], y))
    limit = end_limit(Levels.of(cb.Forecasts(y, p)))
    fitted = fit(y, p, method=method)
    slopes = [getattr(fitted.map, name, 1) for name in ("low", "high")]
    if fitted.details["clip"] < limit and min(slopes) > 0:
        ends = fitted.predict([0.0, 1.0])
        assert limit * (1 - 1e-6) <= ends.min() <= ends.max() <= 1 - limit * (1 - 1e-6)


def test_auto_hardly_changes_certain_predictions_that_are_right():
    """Where 0 and 1 are earned, auto costs less than half a thousandth of a nat."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        p = rng.choice([0.0, 1.0, 0.2, 0.5, 0.8], 100, p=[0.3, 0.3, 0.1, 0.2, 0.1])
        fitted = fit((rng.random(100) < p).astype(int), p)
        if fitted.chosen == "limits":
            assert -0.6 * np.log1p(-fitted.predict([0.0])[0]) < 5e-4
