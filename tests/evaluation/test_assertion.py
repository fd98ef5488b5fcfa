"""assert_calibrated: silent when limits are kept, and a message that says what failed and by how much."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.gate import judge


def data(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return rng.random(n) < p, p


def test_kept_limits_pass():
    findings = cb.assert_calibrated(*data(), max={"smooth": 0.1, "in-the-large": 0.1}, seed=1)
    assert [finding.outcome for finding in findings] == ["pass", "pass"]


def test_the_message_names_measure_value_and_limit():
    y, p = data()
    with pytest.raises(
        AssertionError, match=r"smooth: broken: 0\.\d+, approximately between .* above the limit 0.02"
    ):
        cb.assert_calibrated(y, p / 2, max={"smooth": 0.02, "brier": 1.0}, seed=1)
    with pytest.raises(AssertionError, match="Too little data"):
        cb.assert_calibrated(y[:50], p[:50], max={"smooth": 0.02}, seed=1)


@pytest.mark.parametrize(
    "limits", [{}, {"smoth": 0.1}, {"smooth": -1}, {"smooth": float("nan")}, {"smooth": True}]
)
def test_bad_limits_are_refused(limits):
    with pytest.raises(cb.CalibrantError):
        cb.assert_calibrated(*data(), max=limits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"),
    [("binned", 0.02), ("e90", 0.03), ("ici", 0.02), ("log-mcb", 0.005), ("brier-mcb", 0.002)],
)
def test_calibrated_models_are_seldom_failed(name, limit):
    failed = 0
    for k in range(100):
        f = cb.Forecasts(*data(200, seed=[k, 2]))
        failed += judge(f, {name: limit}, confidence=0.95, draws=199, seed=k)[0].outcome == "fail"
    assert failed <= 16  # 5%: more than that happens once in 100,000 such tests


def test_an_undecided_limit_says_how_many_records_would_decide():
    rng = np.random.default_rng(3)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(float)
    with pytest.raises(AssertionError, match=r"Too little data.*about [\d,]+ records would decide"):
        cb.assert_calibrated(y, p, max={"in-the-large": 0.03}, seed=1)
