"""Honest ends: their definition, and that they move as little as the records do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import fits as oracle
from recalibration.laws import GRID, fit, gridded
from samples import samples

from calibrant.fits.isotonic import bounded_slope, centered_isotonic, honest_range, isotonic
from calibrant.fits.levels import Levels

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
    ends = honest_range(rates, levels.weights)
    assert ends.low == pytest.approx(oracle.honest_low_end(rates, levels.weights), abs=1e-12)
    assert ends.high == pytest.approx(1 - oracle.honest_low_end(1 - rates, levels.weights), abs=1e-12)
    assert 0 < ends.low <= 0.5 <= ends.high < 1
    assert isotonic(levels).rates == pytest.approx(ends.holds(rates), abs=1e-9)


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
