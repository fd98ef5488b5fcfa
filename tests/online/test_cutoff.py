"""CutoffForecaster: its bound over all outcomes and coins, against seven adversaries, and its plain twin."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import Adversary

import calibrant as cb
from calibrant.kernels.online import cutoff_pair
from calibrant.online import CutoffForecaster
from calibrant.online.bounds import cutoff_block, cutoff_bound


def potential(curve, rate):
    inner = len(curve) - 2
    weight = np.array([1.0, *[1.0 / inner] * inner, 1.0]) / 3
    return float((weight * np.exp(rate * curve)).sum() * (weight * np.exp(-rate * curve)).sum())


def after(curve, point, outcome):
    """The curve after one more answer, the plain way."""
    points = len(curve) - 2
    shift = (np.arange(len(curve)) > point) * (outcome - point / points)
    return curve + shift


@given(
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), max_size=40),
    st.floats(0.01, 3.0),
    st.floats(0, 1),
)
@settings(max_examples=200, deadline=None)
def test_neither_outcome_raises_the_potential_by_more_than_proven(log_points, answers, rate, start):
    points = 2**log_points
    curve = np.zeros(points + 2)
    for point, outcome in answers:
        curve = after(curve, min(point, points), outcome)
    low, high, chance = cutoff_pair(curve, rate, round(start * points))
    assert high - low in (0, 1)
    assert 0 <= chance <= 1
    grown = math.expm1(rate**2 / 8 + rate / (2 * points))
    allowed = potential(curve, rate) * (1 + grown / (1 + 1 / math.cosh(rate / 2)))
    for outcome in (0, 1):
        mean = chance * potential(after(curve, low, outcome), rate)
        mean += (1 - chance) * potential(after(curve, high, outcome), rate)
        assert mean <= allowed * (1 + 1e-9)


def worst_mean(rounds, horizon=None):
    """The largest mean error over all adversaries that see every coin but the next, from the game tree."""

    @functools.cache
    def value(t, curve, last):
        if t == rounds:
            return max(curve) - min(curve)
        now, points = np.array(curve), len(curve) - 2
        finer, rate, _ = cutoff_block(t + 1, horizon)
        if finer != points:
            inner = np.repeat(now[1:-1], finer // points)
            now, last = np.concatenate([now[:1], inner, now[-1:]]), last * (finer // points)
        low, high, chance = cutoff_pair(now, rate, last)
        mixture = [(k, share) for k, share in ((low, chance), (high, 1 - chance)) if share > 0]
        return max(
            sum(share * value(t + 1, tuple(after(now, k, y)), k) for k, share in mixture) for y in (0, 1)
        )

    points, _, _ = cutoff_block(1, horizon)
    return value(0, (0.0,) * (points + 2), 0)


def check_all_games(lengths):
    for rounds in lengths:
        assert worst_mean(rounds) <= cutoff_bound(rounds)
        assert worst_mean(rounds, rounds) <= cutoff_bound(rounds, rounds)


def test_all_outcomes_and_coins_to_six_rounds():
    assert worst_mean(1) == 0.5
    check_all_games(range(1, 7))


@pytest.mark.slow
def test_all_outcomes_and_coins_to_twelve_rounds():
    check_all_games(range(7, 13))


def test_the_headline_of_the_bound():
    t = np.arange(1, 300_000)
    root = np.sqrt(t)
    assert (cutoff_bound(t) <= 1.2 * root * np.sqrt(np.log(6 * root)) + root / 2).all()
    assert (np.diff(cutoff_bound(t)) > 0).all()
    ends = np.exp2(np.arange(50.0))  # of blocks, in which the bound is a line and the headline concave
    far = np.concatenate([ends, ends + 1])
    root = np.sqrt(far)
    assert (cutoff_bound(far) <= 1.2 * root * np.sqrt(np.log(6 * root)) + root / 2).all()
    for horizon in (*range(1, 3_001), *(10**k for k in range(4, 13))):
        root = math.sqrt(horizon)
        assert cutoff_bound(horizon, horizon) <= 0.76 * root * math.sqrt(math.log(6 * root)) + root / 2


def play(name, rounds, seed=0):
    """The adversary sees the mixture and every earlier coin."""
    forecaster, adversary = CutoffForecaster(seed=seed), Adversary(name, rounds)
    p, y = [], []
    for _ in range(rounds):
        forecaster._begin_round()
        low, high, chance = cutoff_pair(forecaster._curve(), forecaster._rate, forecaster._last)
        mean = (chance * low + (1 - chance) * high) / forecaster._points
        p.append(forecaster.predict_one())
        y.append(adversary.outcome(mean))
        forecaster.learn_one(y[-1])
    return forecaster, np.array(y), np.array(p)


@pytest.mark.parametrize("name", Adversary.NAMES)
def test_seven_adversaries(name):
    forecaster, y, p = play(name, 600)
    assert forecaster.certificate == pytest.approx(600 * cb.kuiper_error(y, p), abs=1e-9)
    assert forecaster.certificate <= forecaster.bound()


@pytest.mark.slow
@pytest.mark.parametrize("name", Adversary.NAMES)
def test_seven_adversaries_for_a_million_rounds(name):
    from reproduce.adversaries import against_cutoff

    game = against_cutoff(CutoffForecaster(seed=0), name, 10**6)
    assert game.certificates[-1] <= cutoff_bound(10**6)
    assert (game.certificates <= 2 * cutoff_bound(np.arange(1, 10**6 + 1))).all()


def test_a_deterministic_forecaster_has_no_chance_where_this_one_has():
    plain = cb.online.DistanceForecaster()
    p, y = [], []
    for _ in range(400):
        p.append(plain.predict_one())
        y.append(int(p[-1] < 0.5))
        plain.learn_one(y[-1])
    assert 400 * cb.kuiper_error(y, p) >= 100
    assert play("opposite", 400)[0].certificate <= 40


@given(st.lists(st.booleans(), max_size=70), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_steps_and_runs_agree_and_saving_changes_nothing(outcomes, seed):
    whole, steps = CutoffForecaster(seed=seed), CutoffForecaster(seed=seed)
    run = whole.run(outcomes)
    for t, outcome in enumerate(outcomes):
        assert steps.predict_one() == run.predictions[t]
        if t == 20:
            steps = CutoffForecaster.from_json(steps.to_json())
        steps.learn_one(outcome)
        assert steps.certificate == run.certificate[t]
        assert steps.bound() == pytest.approx(run.bound[t])
    assert whole.to_json() == CutoffForecaster.from_json(whole.to_json()).to_json()


def test_late_outcomes_withdraw_the_promise_and_keep_the_error():
    forecaster = CutoffForecaster(seed=3)
    forecaster.predict_one(key="a")
    forecaster.predict_one(key="b")
    for t in range(20):  # the points are refined while "a" waits
        forecaster.predict_one(key=t)
        forecaster.learn_one(t % 2, key=t)
    forecaster.learn_one(1, key="a")
    forecaster.forget("b")
    assert forecaster.rounds == 21
    assert forecaster.bound() is None
