"""ClassForecaster: its bound over all outcomes of small games, exact over the noise, and its plain twin."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import calibrant as cb
from calibrant.online import ClassForecaster
from calibrant.online.bounds import class_bound, class_rate


def mean_payoff(counts, rate, payoffs, outcome):
    """The expected payoff of the best action under the forecast, over all noise: plain enumeration."""
    size = len(counts)
    if rate >= 1:
        return payoffs[best_action(counts, payoffs)][outcome]
    noise = np.arange(math.ceil(-18 / math.log1p(-rate)))  # more has a chance below 2e-8
    chance = rate * (1 - rate) ** noise
    grids = np.meshgrid(*[noise] * size, indexing="ij")
    total = np.stack([c + g for c, g in zip(counts, grids, strict=True)])
    weight = math.prod(np.meshgrid(*[chance] * size, indexing="ij"))
    action = np.argmax(np.tensordot(payoffs, total, axes=1), axis=0)
    return float((weight * payoffs[action, outcome]).sum())


def best_action(counts, payoffs):
    return int(np.argmax(payoffs @ np.asarray(counts)))


def worst_regret(rounds, payoffs, horizon=None):
    size, worst, known = payoffs.shape[1], -math.inf, {}
    for outcomes in itertools.product(range(size), repeat=rounds):
        counts, total = [0] * size, 0.0
        for t, y in enumerate(outcomes, start=1):
            at = (t, *counts, y)
            if at not in known:
                known[at] = mean_payoff(counts, class_rate(t, size, horizon), payoffs, y)
            total += known[at]
            counts[y] += 1
        worst = max(worst, float((payoffs @ counts).max()) - total)
    return worst


PAYOFFS = [
    np.eye(2),
    np.eye(3),
    np.array([[1.0, 0, 0], [0, 1, 0.2], [0.5, 0.5, 0.9]]),
    np.array([[0.0, 1], [1, 0], [0.6, 0.6]]),
]


@pytest.mark.parametrize("payoffs", PAYOFFS)
def test_regret_of_all_outcomes_stays_below_the_bound(payoffs):
    size = payoffs.shape[1]
    for rounds in range(1, 8 if size == 2 else 5):
        assert worst_regret(rounds, payoffs) <= class_bound(rounds, size) + 1e-6
        assert worst_regret(rounds, payoffs, rounds) <= class_bound(rounds, size, rounds) + 1e-6


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_bounds_are_of_order_root_of_classes_times_rounds(classes):
    for rounds in (classes, 100, 10_000, 10**6):
        root = math.sqrt(classes * rounds)
        exact = sum(class_rate(t, classes) for t in range(1, min(rounds, 10_000) + 1))
        last = class_rate(rounds, classes)
        if rounds <= 10_000:
            assert min(rounds, exact + classes * (1 - last) / last) <= class_bound(rounds, classes) + 1e-9
        assert class_bound(rounds, classes) <= 2 * math.sqrt(2) * root
        assert class_bound(rounds, classes, rounds) <= max(0.0, 2 * root - classes) + 1e-9


def test_adversaries_against_the_most_probable_class():
    """Against the class forecast as least probable, always taking the most probable one regrets little."""
    forecaster, counts, payoff = ClassForecaster(4, seed=1), np.zeros(4), 0.0
    for _ in range(2000):
        p = forecaster.predict_one()
        y = int(np.argmin(counts))  # knows the past, not the coin
        payoff += float(np.argmax(p) == y)
        counts[y] += 1
        forecaster.learn_one(y)
    assert counts.max() - payoff <= forecaster.bound()


def test_steps_runs_and_saving_agree():
    y = np.random.default_rng(0).integers(0, 3, 60)
    whole, steps = ClassForecaster(3, seed=5), ClassForecaster(3, seed=5)
    run = whole.run(y)
    assert run.sum(axis=1) == pytest.approx(np.ones(60))
    for t, outcome in enumerate(y):
        assert steps.predict_one().tolist() == run[t].tolist()
        if t == 20:
            steps = ClassForecaster.from_json(steps.to_json())
        steps.learn_one(outcome)
    assert steps.to_json() == whole.to_json()
    assert whole.certificate is None
    assert "rounds=60" in repr(whole)


def test_frequencies_follow_the_outcomes():
    run = ClassForecaster(["x", "y"], horizon=4000, seed=0).run(["x", "x", "x", "y"] * 1000)
    assert run[-1] == pytest.approx([0.75, 0.25], abs=0.03)


def test_late_outcomes_withdraw_the_promise():
    forecaster = ClassForecaster(2, seed=0)
    forecaster.predict_one(key="a")
    forecaster.predict_one(key="b")
    forecaster.learn_one(1, key="b")
    forecaster.forget("a")
    assert forecaster.rounds == 1
    assert forecaster.bound() is None


@pytest.mark.parametrize("classes", [1, True, "ab", ["a"], ["a", "a"], [1.5, 2], None])
def test_bad_classes(classes):
    with pytest.raises(cb.InvalidInputError, match="classes must be"):
        ClassForecaster(classes)


def test_bad_labels_and_states():
    forecaster = ClassForecaster(["a", "b"], seed=0)
    with pytest.raises(cb.InvalidInputError, match="y must be one of the classes 'a', 'b'; got 'c'"):
        forecaster.run(["a", "c"])
    assert forecaster.rounds == 0
    text = forecaster.to_json().replace('"counts": [0, 0]', '"counts": [0, 3]')
    with pytest.raises(cb.InvalidInputError, match="forecasts"):
        ClassForecaster.from_json(text)
