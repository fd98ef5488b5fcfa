"""No data give a measure more than the registry says it can reach, and no interval reaches farther."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import CalibrantError, LevelSetWarning
from calibrant.metrics.lookup import measures

pytestmark = pytest.mark.filterwarnings(f"ignore::{LevelSetWarning.__module__}.LevelSetWarning")
BOUNDED = [row for row in measures().values() if math.isfinite(row.largest)]


def _extremes():
    rng = np.random.default_rng(1)
    for n in (2, 3, 7):
        yield np.zeros(n), np.ones(n)
        yield np.ones(n), np.zeros(n)
        yield np.arange(n) % 2, 1.0 - np.arange(n) % 2
        for _ in range(12):
            p = rng.choice([0, 0.001, 0.25, 0.5, 0.999, 1, rng.random()], n)
            yield rng.choice([p < 0.5, rng.integers(0, 2, n), rng.random(n)]), p


@pytest.mark.parametrize("row", BOUNDED, ids=lambda row: row.name)
def test_no_data_reach_farther(row):
    least, most = row.reachable()
    values = []
    for y, p in _extremes():
        try:
            values.append(float(row.function.core(cb.Forecasts(y, p), **row.options)))
        except CalibrantError:
            continue
    assert least - 1e-12 <= min(values)
    assert max(values) == pytest.approx(most)  # reached by certain predictions that all fail


def test_differences_of_tiny_data_stay_within_reach():
    found = cb.compare([1, 1], [0.02, 0.05], [0.98, 0.9], measure="smooth", draws=99, seed=1)
    assert all(-1.0 <= pair.lower <= pair.upper <= 1.0 for pair in found.differences)


def test_further_options_may_reach_farther():
    binned = measures()["binned"]
    assert binned.reachable() == (0.0, 1.0)
    assert binned.reachable({"add_width": True}) == (0.0, math.inf)
    assert measures()["l1-atb"].reachable({"norm": 1}) == (0.0, 1.0)
    assert measures()["in-the-large"].reachable() == (-1.0, 1.0)


@pytest.mark.parametrize("name", ["smooth", "kuiper", "atb", "binned", "brier", "in-the-large"])
@pytest.mark.parametrize("happened", [0, 1])
def test_intervals_of_tiny_data_stay_within_reach(name, happened):
    p = [0.02, 0.05] if happened else [0.98, 0.95]
    found = cb.confidence_interval([happened] * 2, p, measure=name, draws=99, seed=1)
    assert -1.0 <= found.lower <= found.value <= found.upper <= 1.0
