"""The reference of an estimated decision loss: right under calibration, left behind by a real loss."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb


def draw(n, seed, shift):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    return rng.random(n) < 1 / (1 + np.exp(-(np.log(p / (1 - p)) + shift))), p


@pytest.mark.parametrize("payoff", [None, 0.3, "quadratic"])
def test_a_real_loss_stands_out(payoff):
    y, p = draw(3000, 1, 0.8)
    found = cb.estimate_decision_loss(y, p, payoff=payoff, draws=39, seed=3)
    assert found.real
    assert found.pvalue == 1 / 40
    assert "more than calibrated forecasts would show on 3,000 records" in str(found)
    assert found == cb.estimate_decision_loss(y, p, payoff=payoff, draws=39, seed=3)


def test_noise_in_the_level_sets_shows_in_the_reference():
    """Ten records a level: the plain value is large, and calibrated forecasts would show as much."""
    rng = np.random.default_rng(2)
    p = rng.integers(1, 400, 4000) / 400
    y = rng.random(4000) < p
    plain = cb.estimate_decision_loss(y, p, recalibrator=None, draws=99, seed=1)
    fitted = cb.estimate_decision_loss(y, p, draws=99, seed=1)
    assert plain.value > 0.02
    assert plain.null_mean > 0.02
    assert not plain.real
    assert not fitted.real
    assert fitted.null_upper < plain.null_mean / 3


def test_pvalues_are_uniform_under_calibration():
    values = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = rng.random(150).round(1)
        y = rng.random(150) < p
        values.append(cb.estimate_decision_loss(y, p, recalibrator=None, draws=19, seed=seed).pvalue)
    # valid: P(p <= a) <= a; by Hoeffding 120 values leave this band with probability below 1e-3
    for level in (0.05, 0.25, 0.5):
        assert np.mean(np.array(values) <= level + 1e-9) <= level + 0.17
    assert np.mean(np.array(values) <= 0.5) >= 0.33


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_pvalues_do_not_depend_on_the_unit_of_the_payoffs(unit):
    y, p = draw(300, 1, 0.8)
    found, same = (
        cb.estimate_decision_loss(y, p, payoff=[(0, -size), (-0.3 * size, -0.3 * size)], draws=39, seed=3)
        for size in (unit, 1.0)
    )
    assert found.pvalue == same.pvalue
    assert found.real == same.real


def test_weighted_records_and_the_seed_is_recorded():
    y, p = draw(400, 4, 0.0)
    w = np.random.default_rng(0).random(400)
    found = cb.estimate_decision_loss(y, p, sample_weight=w, draws=9)
    again = cb.estimate_decision_loss(y, p, sample_weight=w, draws=9, seed=found.seed)
    assert found == again
    assert found.recalibrator == "isotonic"


def test_what_makes_no_sense_is_refused():
    y, p = draw(50, 5, 0.0)
    for options, message in (
        ({"confidence": 1.0}, "confidence"),
        ({"draws": 0}, "draws"),
        ({"seed": -1}, "seed"),
        ({"recalibrator": "platt"}, "recalibrator"),
    ):
        with pytest.raises(cb.CalibrantError, match=message):
            cb.estimate_decision_loss(y, p, **options)
    with pytest.raises(cb.CalibrantError, match="0 or 1"):
        cb.estimate_decision_loss(p, p)
