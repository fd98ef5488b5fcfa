"""tolerance_test: errors below 1 - confidence on both sides, constants that hold, and sense at any n."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant as cb

MEASURES = ["smooth", "lower-distance"]


def shifted(n, by, rng):
    p = 0.8 * rng.random(n)
    return rng.random(n) < p + by, p


@pytest.mark.parametrize("measure", MEASURES)
def test_enough_data_decides_rightly(measure):
    rng = np.random.default_rng(1)
    near, far = shifted(40_000, 0.005, rng), shifted(40_000, 0.15, rng)
    limits = {"accept": 0.01, "reject": 0.1, "measure": measure}
    assert cb.tolerance_test(*near, **limits).verdict == "accept"
    assert cb.tolerance_test(*far, **limits).verdict == "reject"
    assert cb.tolerance_test(*shifted(100, 0.05, rng), **limits).verdict == "undecided"


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("method", ["guaranteed", "bootstrap"])
def test_errors_on_both_sides(measure, method):
    """The distance is exactly at a limit (a shift's distance is its size): the hardest case of each side."""
    rng = np.random.default_rng(2)
    runs, confidence = 60, 0.8
    wrong_accept = wrong_reject = 0
    for run in range(runs):
        options = {"measure": measure, "method": method, "confidence": confidence, "draws": 99, "seed": run}
        at_reject = cb.tolerance_test(*shifted(400, 0.1, rng), accept=0.02, reject=0.1, **options)
        at_accept = cb.tolerance_test(*shifted(400, 0.02, rng), accept=0.02, reject=0.1, **options)
        wrong_accept += at_reject.verdict == "accept"
        wrong_reject += at_accept.verdict == "reject"
    assert wrong_accept <= 20  # 12 expected at most
    assert wrong_reject <= 20


@pytest.mark.parametrize("measure", MEASURES)
def test_the_expected_deviation_is_bounded_as_claimed(measure):
    """On data where everything is noise (calibrated, v = 1/2) the mean value stays below its constant."""
    rng = np.random.default_rng(3)
    row = cb.measures()[measure]
    for p in (np.full(100, 0.5), rng.random(100), np.repeat([0.0, 1.0], 50)):
        values = [cb.measure(cb.Forecasts(rng.random(100) < p, p), row.name).value for _ in range(60)]
        assert np.mean(values) <= {"smooth": 1.7072, "lower-distance": 1.4143}[measure] / 10


def test_bounds_hold_the_distance():
    rng = np.random.default_rng(4)
    for measure in MEASURES:
        for by in (0.0, 0.05, 0.15):
            found = cb.tolerance_test(*shifted(2000, by, rng), accept=0.01, reject=0.9, measure=measure)
            assert found.lower <= by <= found.upper
            assert found.method == "guaranteed"
            assert found.seed is None


def test_bootstrap_is_labelled_seeded_and_shorter():
    rng = np.random.default_rng(5)
    data = shifted(2000, 0.03, rng)
    sure = cb.tolerance_test(*data, accept=0.01, reject=0.2)
    short = cb.tolerance_test(*data, accept=0.01, reject=0.2, method="bootstrap", draws=199, seed=7)
    assert short.method == "bootstrap (approximate)"
    assert short.upper - short.lower < sure.upper - sure.lower
    assert short == cb.tolerance_test(*data, accept=0.01, reject=0.2, method="bootstrap", draws=199, seed=7)
    assert short.to_dict()["seed"] == 7


def test_weights_widen_the_bounds():
    rng = np.random.default_rng(6)
    y, p = shifted(1000, 0.0, rng)
    plain = cb.tolerance_test(y, p, accept=0.01, reject=0.2)
    weighted = cb.tolerance_test(y, p, accept=0.01, reject=0.2, sample_weight=rng.pareto(1.5, 1000) + 0.1)
    assert weighted.upper - weighted.value > plain.upper - plain.value


def test_misuse_is_refused():
    y, p = [0, 1], [0.4, 0.6]
    for options in (
        {"accept": 0.2, "reject": 0.1},
        {"accept": 0.05, "reject": 0.1, "measure": "smooth"},
        {"accept": 0.05, "reject": 0.1, "measure": "brier"},
        {"accept": 0.05, "reject": 0.1, "method": "magic"},
        {"accept": 0.05, "reject": 0.1, "confidence": 0},
    ):
        with pytest.raises(cb.CalibrantError):
            cb.tolerance_test(y, p, **options)


def test_the_bootstrap_seldom_accepts_rare_events_that_are_far_off():
    """Predicted 0.01, true rate 0.05, 50 records: a sample without events says little."""
    wrong = 0
    for k in range(100):
        y = np.random.default_rng([k, 3]).random(50) < 0.05
        found = cb.tolerance_test(
            y, [0.01] * 50, accept=0.0, reject=0.04, method="bootstrap", draws=99, seed=k, threads=1
        )
        wrong += found.verdict == "accept"
    assert wrong <= 10


@pytest.mark.parametrize("name", ["ece", "kuiper", "ks", "l1-atb", "kernel", "emd"])
def test_other_measures_decide_about_themselves(name):
    """The guaranteed interval holds the population's value; distant values are distinguished."""
    values, shift = np.linspace(0.05, 0.95, 19), 0.08
    truth = np.clip(values + shift, 0, 1)
    population = cb.measure(cb.Forecasts(truth, values), name).value
    rng = np.random.default_rng(0)
    for n in (50, 2_000):
        for _ in range(20):
            at = rng.integers(0, 19, n)
            y = (rng.random(n) < truth[at]).astype(int)
            found = cb.tolerance_test(y, values[at], accept=0.01, reject=0.5, measure=name)
            assert found.lower <= population <= found.upper
            assert found.verdict != "reject" or population > 0.01
    assert "the error is" in str(cb.tolerance_test(y, values[at], accept=0.01, reject=0.5, measure=name))
    plan = cb.required_samples(accept=0.02, reject=0.1, measure=name)
    assert plan.n > plan.least > 100


FINITE = ["smooth", "lower-distance", "ece", "kuiper", "ks", "atb", "l1-atb", "kernel", "emd"]


@pytest.mark.parametrize("measure", FINITE)
def test_guaranteed_intervals_hold_the_population_value(measure):
    """Theorem 4.5 of the truthfulness paper with constants, and its like: at most 1 - confidence miss."""
    v, rate = np.array([0.1, 0.3, 0.45, 0.6, 0.9]), np.array([0.2, 0.2, 0.5, 0.65, 0.8])
    truth = cb.measure(cb.Forecasts(rate, v), measure).value
    rng, missed, runs = np.random.default_rng(5), 0, 6 if measure == "lower-distance" else 40
    for _ in range(runs):
        level = rng.integers(0, 5, 120)
        y = rng.random(120) < rate[level]
        found = cb.confidence_interval(y, v[level], measure=measure, confidence=0.5, method="guaranteed")
        assert found.lower <= found.value <= found.upper
        missed += truth not in found
    assert missed <= runs // 2
    assert found.approximate == ()


@pytest.mark.parametrize(("measure", "power", "constant"), [("atb", 2, 1.0), ("l1-atb", 1, math.sqrt(2))])
def test_guaranteed_intervals_shrink_like_one_over_root_n(measure, power, constant):
    n, error = 10_000, 0.025
    found = cb.confidence_interval([0, 1] * (n // 2), [0.2] * n, measure=measure, method="guaranteed")
    reach = math.sqrt(2 * math.log(1 / error) / n)
    value = found.value ** (1 / power)
    assert found.upper == pytest.approx((value + reach) ** power)
    assert found.lower == pytest.approx((value - reach - constant / math.sqrt(n)) ** power)
    plan = cb.required_samples(accept=0.01, reject=0.1, measure=measure)
    verdict = cb.tolerance_test([0] * plan.n, [0.05] * plan.n, accept=0.01, reject=0.1, measure=measure)
    assert verdict.verdict != "undecided"


def test_guaranteed_intervals_say_what_they_need():
    with pytest.raises(cb.UnknownNameError, match="brier"):
        cb.confidence_interval([0, 1], [0.2, 0.3], measure="brier", method="guaranteed")
    with pytest.raises(cb.InvalidInputError, match="takes no options"):
        cb.confidence_interval([0, 1], [0.2, 0.3], measure="ece", method="guaranteed", bins=3)
    with pytest.raises(cb.UnknownNameError, match="method"):
        cb.confidence_interval([0, 1], [0.2, 0.3], method="proven")
