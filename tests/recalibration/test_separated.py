"""Maps of outcomes that predictions separate: no slope is too steep for them, so n records set limits."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pytest

import calibrant as cb

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.result.RecalibrationWarning")


def separated(n):
    p = (np.arange(n) + 0.5) / n
    return (p > 0.5).astype(float), p


@pytest.mark.parametrize("n", [8, 100, 1_000])
@pytest.mark.parametrize("turned", [False, True], ids=["right way", "wrong way"])
@pytest.mark.parametrize("method", ["platt", "temperature", "beta", "spline"])
def test_outputs_stay_within_what_n_records_support(method, n, turned, tmp_path):
    """Platt maps reached 1e-17."""
    y, p = separated(n)
    fitted = cb.recalibrate(1 - y if turned else y, p, method=method, seed=0)
    at = np.linspace(p[0], p[-1], 101)
    q = fitted.predict(at)
    limit = 0.5 / (n + 1)
    assert q.min() >= limit * (1 - 1e-9)
    assert q.max() <= 1 - limit * (1 - 1e-9)
    if not turned:
        assert n == 8 or q.min() == pytest.approx(limit, rel=0.1)
        assert "Predictions separate the outcomes" in str(fitted.details["clip_note"])
    fitted.save(tmp_path / "map.json")
    assert np.array_equal(cb.load_recalibration(tmp_path / "map.json").predict(at), q)
    rows = duckdb.sql(f"SELECT {fitted.to_sql('p')} FROM (SELECT unnest({at.tolist()}) AS p)").fetchnumpy()
    assert np.allclose(next(iter(rows.values())), q, atol=1e-12)


def test_maps_of_other_outcomes_are_stored_as_before(tmp_path):
    y, p = separated(100)
    y[[3, 96]] = 1 - y[[3, 96]]
    fitted = cb.recalibrate(y, p, method="platt", seed=0)
    fitted.save(tmp_path / "map.json")
    assert set(json.loads((tmp_path / "map.json").read_text())["map"]) == {
        "form", "intercept", "low", "high", "clip",
    }  # fmt: skip


@pytest.mark.parametrize("n", [20, 1_000])
@pytest.mark.parametrize("outcome", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_a_shift_toward_the_only_outcome_makes_nothing_more_certain_than_it_may_be(n, outcome, scale):
    p = scale * separated(n)[1]
    q = cb.recalibrate(np.full(n, outcome), p, method="shift", seed=0).predict(p)
    certainty = q.min() if outcome == 0 else 1 - q.max()
    before = p.min() if outcome == 0 else 1 - p.max()
    assert certainty >= min(before, 0.5 / (n + 1)) * (1 - 1e-9)


def test_limits_can_be_left_out():
    y, p = separated(100)
    assert cb.recalibrate(y, p, method="platt", shrink=10.0, seed=0).predict(p).min() < 1e-6
