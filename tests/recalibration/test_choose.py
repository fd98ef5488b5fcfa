"""When auto changes anything: the test of Cox, or a sure gain on held-out records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from calibrant.fits.levels import Costs, Levels
from calibrant.forecasts import Forecasts
from calibrant.recalibration import choose
from calibrant.recalibration.recalibrate import recalibrate


def slow_likelihood_ratio(y, p):
    """Twice the gain in log likelihood of the best intercept and slope, by a general optimiser."""
    x = np.log(p / (1 - p))

    def loss(ab):
        eta = ab[0] + ab[1] * x
        return float(np.sum(np.logaddexp(0, eta) - y * eta))

    best = minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-8})
    return 2 * (loss([0.0, 1.0]) - best.fun)


def test_cox_rejects_where_the_likelihood_ratio_is_beyond_chi_squared():
    rng, answers = np.random.default_rng(2), set()
    for k in range(30):
        p = rng.uniform(0.05, 0.95, 80)  # no prediction that a clip could move
        y = (rng.random(80) < np.clip(p + 0.03 * (k % 8), 0, 1)).astype(float)
        rejected = bool(chi2.sf(slow_likelihood_ratio(y, p), 2) < choose.TEST_LEVEL)
        assert choose._cox_rejects(Levels.of(Forecasts(y, p))) == rejected
        answers.add(rejected)
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("gaps", "expected"), [((0.3, 0.3, 0.3), np.inf), ((0.0, 0.0, 0.0), 0.0), ((-1.0, -1.0, -1.0), -np.inf)]
)
def test_gaps_without_noise_are_sure(gaps, expected):
    zero, rates = np.zeros(3), np.ones(3)
    one = Costs(np.array(gaps), zero, rates, rates)
    assert choose._gap(one, Costs(zero, zero, rates, rates)) == expected


def test_no_change_is_kept_on_calibrated_records():
    """A false change has probability of about 1 % by Cox's test, and some more by the gain."""
    changed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.02, 0.98, 100)
        changed += recalibrate(rng.random(100) < p, p, candidates=["platt"], seed=seed).chosen != "identity"
    assert changed <= 2


def test_a_bend_that_coxs_line_cannot_show_is_seen_on_held_out_records():
    rng = np.random.default_rng(1)
    p = rng.random(3_000)
    truth = np.clip(p + 0.12 * np.sin(4 * np.pi * p), 0, 1)
    y = rng.random(3_000) < truth
    assert recalibrate(y, p, candidates=["platt", "centered-isotonic"], seed=0).chosen == "centered-isotonic"
