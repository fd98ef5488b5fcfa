"""Finding the pieces of a map on a grid: the same pieces as by bisection, whatever the cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.recalibration.maps import piecewise
from calibrant.recalibration.maps.piecewise import PiecewiseMap

places = st.floats(-1, 2) | st.integers(0, 16).map(lambda k: k / 16) | st.floats(0, 1e-300) | st.just(-0.0)


@settings(max_examples=300)
@given(
    st.lists(places, min_size=1, max_size=60),
    st.lists(places, max_size=20),
    st.sampled_from(["left", "right"]),
)
def test_a_grid_finds_what_bisection_finds(cuts, others, side):
    known = np.sort(np.array(cuts))
    x = np.concatenate((known, np.nextafter(known, 9), np.nextafter(known, -9), others, [0.0, 1.0]))
    found = piecewise.finder(known, side, 10**6)(x)
    assert found.tolist() == np.searchsorted(known, x, side=side).tolist()


@pytest.mark.parametrize("size", [2, 3, 50, 3_000])
def test_many_cuts_and_predictions(size):
    rng = np.random.default_rng(size)
    for cuts in (rng.random(size), rng.random(size) ** 9, np.round(rng.random(size), 2), np.zeros(size)):
        known, x = np.sort(cuts), np.concatenate((rng.random(100_000), cuts))
        assert (piecewise.finder(known, "left", len(x))(x) == np.searchsorted(known, x)).all()


@settings(max_examples=100)
@given(st.data())
def test_one_prediction_gets_what_it_gets_among_many(data):
    """By bisection and without a table of slopes if they are few, on a grid if they are many."""
    values = np.unique(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=30)))
    rates = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(values), max_size=len(values))))
    x = np.concatenate((values, data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=10)), [0.0, 1.0]))
    predict = PiecewiseMap(values, rates).predict
    many = predict(np.resize(x, 3 * piecewise.BLOCK + 5))[: len(x)]
    single = np.concatenate([predict(x[k : k + 1]) for k in range(len(x))])
    assert many.tolist() == single.tolist()
    assert (predict(x) == single).all()
    np.testing.assert_allclose(single, np.interp(x, values, rates), rtol=1e-9, atol=1e-12)
