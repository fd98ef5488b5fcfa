"""The default test: the definition record by record, and what it is for: no blind spot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import simple
from samples import Sample, samples

import calibrant as cb
from calibrant.inference.classic_tests import omnibus


@given(sample=samples(min_size=2, max_size=12))
@settings(max_examples=150)
def test_is_its_definition(sample):
    w = None if sample.w is None else np.maximum(sample.w, 1e-4 * sample.w.max())
    sample = Sample((sample.y > 0.5).astype(int), sample.p.round(3), w)  # the oracle needs tame logits
    f = sample.forecasts
    if f.null_variance == 0:
        return
    certain = (sample.p == 0) | (sample.p == 1)
    if np.any(sample.y[certain] != sample.p[certain]):
        assert omnibus(f) == math.inf
        return
    expected = min(simple.omnibus(sample), 500.0)  # further out the oracle underflows
    assert min(omnibus(f), 500.0) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_draws_in_a_batch_are_the_statistic_itself():
    rng = np.random.default_rng(1)
    p = rng.random(300).round(2)
    f = cb.Forecasts(rng.random(300) < p, p)
    from calibrant.inference.testing import find_test

    row = find_test("omnibus", f)
    assert row.null.batch(f, f.residuals[None], {})[0] == pytest.approx(omnibus(f))


def test_one_prediction_and_certain_predictions():
    same = cb.Forecasts(np.repeat([0, 1], [40, 60]), np.full(100, 0.5))
    assert math.exp(-omnibus(same)) == pytest.approx(2 * 0.0227501319, rel=1e-6)  # two deviations: normal
    beside_zero = cb.Forecasts([0, 1, *[0, 1] * 50], [0.0, 1.0, *[0.5, 0.5] * 50])
    assert omnibus(beside_zero) == 0
    an_event_at_zero = cb.Forecasts([1, 1, *[0, 1] * 50], [0.0, 1.0, *[0.5, 0.5] * 50])
    assert omnibus(an_event_at_zero) == math.inf
    found = cb.calibration_test(an_event_at_zero, draws=99, seed=1)
    assert found.pvalue == 0.01
    assert found.details["impossible"] == pytest.approx(1 / 102)
    assert not cb.evaluate(an_event_at_zero, draws=99, seed=1).verdict.calibrated


@pytest.mark.parametrize("error", ["shift", "scale", "bump"])
def test_sees_what_either_part_sees(error):
    """At a size where a part alone often misses it: nine rejections in ten or more."""
    rng = np.random.default_rng(3)
    p = rng.beta(1.2, 1.2, 1500)
    truth = {
        "shift": p + 0.06 * (p < 0.94),
        "scale": 1 / (1 + ((1 - p) / p) ** 0.72),
        "bump": p + 0.25 * np.maximum(0, 1 - np.abs(p - 0.5) / 0.15),
    }[error]
    found = [
        cb.calibration_test(rng.random(1500) < truth, p, draws=99, seed=run).rejects() for run in range(60)
    ]
    assert np.mean(found) >= 0.9


def test_predictions_that_fall_where_outcomes_rise_are_not_called_overconfident():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 2_000)
    y = rng.random(2_000) < 1 - p
    found = cb.calibration_test(y, p, draws=99, seed=1)
    assert found.details["upside_down"]
    assert "Predictions point the wrong way" in str(found)
    assert "verconfident" not in str(found)
    flat = cb.calibration_test(rng.random(2_000) < 0.5, p, draws=99, seed=1)
    assert "upside_down" not in flat.details
    assert "Overconfident" in str(flat)


def test_a_few_wrong_certain_predictions_do_not_crowd_out_what_else_is_wrong():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 3_000)
    y = rng.random(3_000) < p
    extreme = cb.calibration_test(y, np.clip(1.3 * p - 0.15, 0, 1), draws=99, seed=1)
    assert "Overconfident: predictions are too extreme" in str(extreme)
    assert str(extreme).endswith(
        "Also, predictions of exactly 0 or 1 were wrong, which calibrated ones never are."
    )
    one = p.copy()
    one[np.flatnonzero(~y)[0]] = 1.0
    alone = str(cb.calibration_test(y, one, draws=99, seed=1))
    assert "level: p ≤ 0.01" in alone
    assert alone.endswith(". Predictions of exactly 0 or 1 were wrong, which calibrated ones never are.")
