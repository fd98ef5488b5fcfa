"""The validity test: Lemma 6.2 and 6.4 of the truthfulness paper, by enumeration and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.truthfulness.search import all_outcomes, chances

probability = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 0.1, 0.9]), st.floats(0, 1))


@given(st.lists(probability, min_size=1, max_size=8))
@settings(max_examples=60)
def test_calibrated_forecasts_are_accepted_with_probability_three_quarters(truth):
    """P[ATB <= 1/T] >= 3/4, exactly, over all outcomes (Lemma 6.2)."""
    v = np.array(truth)
    outcomes = all_outcomes(len(v))
    weight = chances(outcomes, v)
    results = [cb.calibration_test(y, v, method="validity") for y in outcomes]
    assert sum(w for w, r in zip(weight, results, strict=True) if r.details["accepted"]) >= 0.75 - 1e-12
    for alpha in (0.25, 0.1, 0.05):  # Markov's p-value is valid
        assert sum(w for w, r in zip(weight, results, strict=True) if r.pvalue <= alpha) <= alpha + 1e-12


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_acceptance_is_far_above_what_is_promised(n):
    rng = np.random.default_rng(n)
    accepted = []
    for _ in range(200):
        v = rng.random(n)
        accepted.append(cb.calibration_test(rng.random(n) < v, v, method="validity").details["accepted"])
    assert np.mean(accepted) > 0.95


def test_forecasts_far_from_calibrated_are_rejected():
    """Lemma 6.4 and Theorem 6.1: a distance of a constant over sqrt(T) is seen."""
    rng = np.random.default_rng(0)
    refused = []
    for _ in range(100):
        v = rng.random(400)
        y = rng.random(400) < np.clip(v + 4 / 20, 0, 1)  # 4 / sqrt(T)
        refused.append(not cb.calibration_test(y, v, method="validity").details["accepted"])
    assert np.mean(refused) > 0.75


def test_weights_stand_for_effective_records():
    rng = np.random.default_rng(1)
    v, y = rng.random(50), rng.integers(0, 2, 50)
    plain = cb.calibration_test(y, v, method="validity")
    equal = cb.calibration_test(y, v, sample_weight=np.full(50, 3.0), method="validity")
    assert plain.details["limit"] == pytest.approx(1 / 50)
    assert equal.pvalue == pytest.approx(plain.pvalue)


def test_refusals():
    with pytest.raises(cb.CalibrantError, match='must be "atb"'):
        cb.calibration_test([0, 1], [0.5, 0.5], measure="kuiper", method="validity")
    with pytest.raises(cb.CalibrantError, match="must be 0 or 1"):
        cb.calibration_test([0.5, 1], [0.5, 0.5], method="validity")
