"""Thinning keeps what matters: masses, extremes, order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from samples import samples

import calibrant as cb
from calibrant.inference import bootstrap
from calibrant.inference.bootstrap import coarse
from calibrant.report.charts.canvas import points_to_draw
from calibrant.report.charts.reliability import consistency_band, density


@given(samples(max_size=30), st.integers(2, 12))
def test_merged_cells_keep_weight_outcome_and_mean(sample, cells):
    f = sample.forecasts
    c = coarse(f, cells)
    assert c.levels <= cells + 3
    assert np.isclose(c.weights.sum(), 1)
    assert np.isclose(c.base_rate, f.base_rate)
    assert np.isclose(c.mean_prediction, f.mean_prediction)
    assert np.isclose(c.squared_weights.sum(), f.squared_weights.sum())
    assert c.n == f.n
    assert np.all(np.diff(c.values) > 0)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=300), st.integers(4, 60))
def test_thinning_keeps_ends_and_extremes_and_no_more_than_asked(heights, points):
    curve = np.array(heights)
    at = points_to_draw(curve, points)
    assert len(at) <= max(points, 4)
    assert at[0] == 0
    assert at[-1] == len(curve) - 1
    assert np.all(np.diff(at) > 0)
    assert curve[at].min() == curve.min()
    assert curve[at].max() == curve.max()


def test_the_density_holds_all_the_weight():
    f = cb.Forecasts([0, 1, 1, 0], [0.1, 0.5, 0.5, 1.0])
    edges, share = density(f.values, f.weights, 0.1, 1.0, bins=10)
    assert len(edges) == 11
    assert np.isclose(share.sum(), 1)
    assert share[-1] == 0.25


def test_a_calibrated_forecaster_lies_in_the_band_and_a_wrong_one_does_not():
    rng = np.random.default_rng(7)
    p = rng.uniform(0, 1, 4000)
    band = consistency_band(cb.Forecasts(rng.random(4000) < p, p), seed=1)
    middle = (band.x > 0.1) & (band.x < 0.9)  # at the ends an isotonic fit reaches 0 and 1
    assert np.all((band.lower <= band.x)[middle])
    assert np.all((band.upper >= band.x)[middle])
    assert np.max(band.upper - band.lower) < 0.2
    from calibrant.metrics.scores import isotonic_curve

    def outside(y):
        f = cb.Forecasts(y, p)
        fit = np.interp(band.x, f.values, isotonic_curve(f))
        return np.mean((fit < band.lower) | (fit > band.upper))

    assert np.mean([outside(rng.random(4000) < p) for _ in range(20)]) < 0.1
    assert outside(rng.random(4000) < p**2) > 0.5


def test_the_band_depends_on_nothing_but_predictions_and_seed():
    p = np.linspace(0.01, 0.99, 200)
    one, other = (consistency_band(cb.Forecasts(y, p), seed=3) for y in (np.zeros(200), np.ones(200)))
    assert np.array_equal(one.lower, other.lower)
    assert not np.array_equal(one.lower, consistency_band(cb.Forecasts(np.ones(200), p), seed=4).lower)


def test_one_record_has_a_band():
    band = consistency_band(cb.Forecasts([1], [0.3]), seed=0)
    assert band.x.tolist() == [0.3]
    assert (band.lower[0], band.upper[0]) == (0.0, 1.0)


def test_records_whose_squared_weights_vanish_have_a_band():
    weights = [1e140, 1e-100, 1e-100, 1e-101, 1e140]
    band = consistency_band(
        cb.Forecasts([0, 1, 0, 1, 1], [0.2, 0.3, 0.3, 0.3, 0.9], sample_weight=weights), seed=0
    )
    assert band.x[0] == 0.2
    assert np.all((band.lower >= 0) & (band.lower <= band.upper) & (band.upper <= 1))


def test_the_interval_of_merged_cells_reaches_the_value_of_the_levels(monkeypatch):
    monkeypatch.setattr(bootstrap, "SIMULATED_CELLS", 5)
    rng = np.random.default_rng(1)
    p = rng.random(5_000)
    y = rng.random(5_000) < np.clip(p + 0.15 * np.sin(40 * p), 0, 1)
    found = cb.evaluate(y, p, measures=["binned"], draws=99, seed=1)
    (row,) = found.rows
    assert found.to_dict()["options"]["cells"] == 5
    assert row.value == cb.measure(y, p, "binned").value  # of the levels, more than any five cells show
    assert row.low < row.value < row.high
    assert row.note == ""
