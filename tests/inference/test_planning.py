"""Planning: the promised power is there, n follows 1 / distance squared, bad questions are refused."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import InvalidInputError
from calibrant.inference.planning import PowerStudy


def test_the_promised_power_is_there():
    """Simulate afresh, record by record, with the test itself."""
    plan = cb.required_samples(0.08, power=0.8, seed=1, draws=499)
    rng = np.random.default_rng(2)
    found = []
    for run in range(200):
        p = rng.random(plan.n)
        truth = np.clip(p - 0.0801, 0, 1)  # clipping takes back what puts the distance at 0.08
        found.append(cb.calibration_test(rng.random(plan.n) < truth, p, draws=99, seed=run).rejects())
    assert np.mean(found) == pytest.approx(0.8, abs=0.13)


def test_n_grows_with_the_inverse_square_of_the_distance():
    wide, narrow = (cb.required_samples(d, seed=1, draws=299) for d in (0.08, 0.04))
    assert 3 <= narrow.n / wide.n <= 5.3
    assert wide.distance == pytest.approx(0.08, abs=1e-4)


def test_planning_is_consistent_both_ways():
    plan = cb.required_samples(0.06, seed=3, draws=299)
    back = cb.detectable_distance(plan.n, seed=3, draws=299)
    assert back.distance == pytest.approx(0.06, rel=0.15)
    assert back.n == plan.n


@pytest.mark.parametrize("alternative", ["shift", "overconfident", "underconfident", "local"])
def test_alternatives_lie_at_the_distance_asked_for(alternative):
    rng = np.random.default_rng(1)
    plan = cb.required_samples(
        0.02, predictions=rng.beta(2, 5, 500), alternative=alternative, seed=1, draws=99
    )
    assert plan.distance == pytest.approx(0.02, abs=1e-4)
    assert plan.alternative == alternative
    assert plan.power >= 0.9


def test_a_direction_of_ones_own_and_another_measure():
    def upper_half(values):
        return np.where(values > 0.5, -1.0, 0.0)

    plan = cb.required_samples(0.05, alternative=upper_half, measure="brier", seed=1, draws=99)
    assert plan.alternative == "upper_half"
    assert plan.to_dict()["measure"] == "brier"


def test_impossible_questions_are_refused():
    for call in (
        lambda: cb.required_samples(0.9),
        lambda: cb.required_samples(0.0),
        lambda: cb.required_samples(0.05, power=1),
        lambda: cb.required_samples(0.05, alternative="sideways"),
        lambda: cb.required_samples(0.05, predictions=[2.0]),
        lambda: cb.detectable_distance(1),
        lambda: cb.detectable_distance(2, predictions=[0.5], draws=99),
        lambda: cb.required_samples(0.05, alpha=0.001, draws=99),
    ):
        with pytest.raises(cb.CalibrantError):
            call()


RARE = [0.02] * 980 + [0.5] * 20


def test_power_is_there_for_a_skewed_mix_of_few_predictions():
    """Most predictions are 0.02, where a shift is easy to see: the common ones decide how many are needed."""
    plan = cb.required_samples(0.02, predictions=RARE, seed=1, draws=9999)
    even = cb.required_samples(0.02, predictions=[0.02] * 500 + [0.5] * 500, seed=1)
    assert plan.n < even.n / 1.5
    rng = np.random.default_rng(3)
    found = []
    for run in range(600):
        p = rng.choice(RARE, plan.n)
        found.append(cb.calibration_test(rng.random(plan.n) < p + 0.02, p, draws=199, seed=run).rejects())
    assert np.mean(found) == pytest.approx(plan.power, abs=0.05)


def test_alternatives_see_how_often_predictions_occur():
    """The mean is above 1/2 though that of the distinct values is not; the median is where most lie."""
    seen = {}

    def looking(values):
        seen["mean"] = values.mean()
        return np.where(values > 0.5, -1.0, 0.0)

    cb.detectable_distance(300, predictions=[0.02] * 300 + [0.8] * 700, alternative=looking, seed=1, draws=99)
    assert seen["mean"] == pytest.approx(0.566)
    local = cb.required_samples(
        0.02, predictions=[0.2] * 900 + [0.5] * 100, alternative="local", seed=1, draws=99
    )
    assert local.distance == pytest.approx(0.02, abs=1e-4)


@pytest.mark.parametrize("n", [2, 16, 100, 199, 1234])
def test_records_are_shared_out_by_frequency_at_any_n(n):

    for predictions in (None, RARE, [0.1, 0.4, 0.4, 0.9]):
        study = PowerStudy(predictions, "kuiper", "shift", 0.05, 0.9, 99, 1)
        at, counts = study._records(n)
        assert counts.sum() == n
        assert counts.min() >= 1
        shares = np.array([np.mean(study.values == v) for v in study.values[at]])
        assert np.abs(counts - n * shares).max() <= 1


def test_bad_predictions_and_numbers_are_named():
    with pytest.raises(
        InvalidInputError, match=r"predictions must not be missing; got nan in row 1 \(2 rows"
    ):
        cb.detectable_distance(500, predictions=[0.5, None, np.nan])
    for n in (500.5, True, "many", 1, 10**30):
        with pytest.raises(InvalidInputError, match="n must be a whole number from 2"):
            cb.detectable_distance(n)
