"""The interval of the gain: against its slow twin, and what clusters and weights do to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.fits.levels import Levels, costs
from calibrant.recalibration.assess import Folds, Gains, gain_interval
from calibrant.recalibration.samples import rows_of
from tests.oracles.assessment import gain_limits

small = st.floats(-40, 40, allow_nan=False)


@st.composite
def held_out(draw):
    n = draw(st.integers(4, 12))
    column = st.lists(small, min_size=n, max_size=n)
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([1e-6, 0.5, 1.0, 3.0, 1e6]), min_size=n, max_size=n))
    splits = draw(st.lists(column, min_size=1, max_size=3))
    return np.array(splits), np.array(draw(column)), np.array(y), np.array(weights)


@given(held_out(), st.booleans(), st.integers(2, 10))
def test_the_interval_equals_its_slow_twin(data, chosen, folds):
    splits, own, y, weights = data

    def as_gains(values):
        return Gains(values, values, y.astype(float), weights)

    held_out = [as_gains(one) for one in splits]
    found = gain_interval(held_out, as_gains(own), folds=folds, chosen=chosen, confidence=0.95)
    expected = gain_limits(splits.tolist(), own.tolist(), y.tolist(), weights.tolist(),
                           folds=folds, chosen=chosen, confidence=0.95)  # fmt: skip
    scale = max(1.0, *(abs(x) for x in expected))
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-7 * scale)


def test_an_unchanged_map_has_an_interval_that_contains_zero():
    gains = Gains(np.full(50, 0.1), np.full(50, 0.1), np.arange(50) % 2.0, np.ones(50))
    _, lower, _ = gain_interval([gains], gains, folds=5, unchanged=True, confidence=0.95)
    assert lower == 0.0


def test_clusters_of_size_one_change_only_the_degrees_of_freedom():
    rng = np.random.default_rng(0)
    g, y = rng.normal(size=200), (rng.random(200) < 0.4).astype(float)
    alone = Gains(g, g, y, np.ones(200))
    clustered = Gains(g, g, y, np.ones(200), np.arange(200))
    assert clustered.design_effect == pytest.approx(200 / 199)
    assert alone.design_effect == pytest.approx(1.0)


def test_duplicated_rows_in_clusters_double_the_variance_of_the_mean():
    rng = np.random.default_rng(1)
    g = rng.normal(size=300)
    twice, y = np.repeat(g, 2), np.tile([0.0, 1.0], 300)
    gains = Gains(twice, twice, y, np.ones(600), np.repeat(np.arange(300), 2))
    assert gains.design_effect == pytest.approx(2.0, rel=0.02)


def test_cells_and_rows_agree():
    p, q, y = np.array([0.2, 0.2, 0.6, 0.6]), np.array([0.3, 0.3, 0.5, 0.5]), np.array([0.0, 1, 1, 1])
    before, after = (costs(Levels(p, y, np.ones(4)), side, "log") for side in (p, q))
    one, zero = before.if_one - after.if_one, before.if_zero - after.if_zero
    rows = Gains(one, zero, y, np.ones(4))
    cells = Gains(one[::2], zero[::2], np.array([0.5, 1.0]), np.array([2.0, 2.0]), single=False)
    assert cells.mean == pytest.approx(rows.mean)
    assert cells.variance == pytest.approx(rows.variance)
    assert cells.degrees == rows.degrees


def test_joined_folds_have_all_records():
    part = rows_of(np.array([0, 1]), np.array([0.2, 0.7]), None, clusters=np.array([0, 1]))
    joined, _, _ = Folds((part, part), (np.array([0.3, 0.6]), np.array([0.3, 0.6]))).gains("log")
    assert joined.total == 4
    assert joined.clusters is not None
    assert len(joined.clusters) == 4


def test_a_map_fitted_to_more_records_may_gain_as_much_as_on_its_own():
    held, own = (Gains(np.full(100, v), np.full(100, v), np.arange(100) % 2.0, np.ones(100)) for v in (0, 1))
    _, _, upper = gain_interval([held], own, folds=5, more_records=True, confidence=0.95)
    assert upper > 1
