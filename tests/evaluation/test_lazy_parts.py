"""What a table does not show is measured when it is asked for, and once."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    p = rng.random(300)
    return (rng.random(300) < p).astype(int), p


def test_a_table_measures_no_distances_and_fits_nothing(rows):
    found = cb.evaluate(*rows, draws=19, seed=1)
    repr(found)
    assert found.over_points is None
    assert not {"distances", "recalibration"} & set(vars(found))
    assert found.distances is found.distances
    assert found.distances.lower == cb.distances(*rows).lower
    assert found.recalibration is found.recalibration
    assert found.over_points is None


def test_points_are_measured_at_once(rows):
    y, p = rows
    found = cb.evaluate(y, p, ids=np.arange(300), draws=19, seed=1)
    assert found.over_points is found.distances.over_points
    with pytest.raises(cb.InvalidInputError, match="ids"):
        cb.evaluate(y, p, ids=np.arange(299), draws=19, seed=1)
