"""OnlineCalibrator: never much worse than raw, whatever happens; better where the predictions are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.kernels.online import mixed
from calibrant.online import OnlineCalibrator
from calibrant.online.calibrator import NAMES, Experts
from tests.oracles.online import aggregate

LEAST = math.log(2) / 2
probabilities = st.one_of(st.sampled_from([0.0, 0.001, 0.1, 0.5, 0.9, 1.0]), st.floats(0, 1))


def regret(y, raw, out):
    """By how much the total Brier score exceeds that of the raw predictions, after each row."""
    return np.cumsum((y - out) ** 2 - (y - raw) ** 2)


@given(st.lists(st.tuples(st.booleans(), probabilities), min_size=1, max_size=300))
@settings(max_examples=150, deadline=None)
def test_never_more_than_ln_2_over_2_above_raw(rows):
    y, p = np.array([float(a) for a, _ in rows]), np.array([b for _, b in rows])
    calibrator = OnlineCalibrator(guard=False)
    out = calibrator.run(y, p).predictions
    assert regret(y, p, out).max() <= LEAST + 1e-9
    assert calibrator.brier_bound() == pytest.approx(LEAST)
    assert ((out >= 0) & (out <= 1)).all()


def test_greedy_outcomes_come_close_to_the_promise():
    rng = np.random.default_rng(1)
    reached = 0.0
    for _ in range(20):
        calibrator, y, p, out = OnlineCalibrator(guard=False), [], [], []
        for _ in range(300):
            p.append(float(rng.choice([0.1, 0.5, 0.9, rng.random()])))
            out.append(calibrator.transform_one(p[-1]))
            y.append(int((1 - out[-1]) ** 2 - (1 - p[-1]) ** 2 > out[-1] ** 2 - p[-1] ** 2))
            calibrator.learn_one(y[-1])
        reached = max(reached, float(regret(np.array(y), np.array(p), np.array(out)).max()))
    assert 0.2 < reached <= LEAST


@given(
    st.lists(st.tuples(st.booleans(), probabilities), min_size=1, max_size=200),
    st.integers(0, 9),
    st.sampled_from([0.5, 0.1, 0.9]),
)
@settings(max_examples=80, deadline=None)
def test_batches_keep_the_promise_of_their_delay(rows, delay, prior):
    y, p = np.array([float(a) for a, _ in rows]), np.array([b for _, b in rows])
    calibrator = OnlineCalibrator(guard=False, delay=delay, prior=prior)
    out = calibrator.run(y, p, batches=np.arange(len(y)) // (delay + 1)).predictions
    most = (delay + 1) * math.log(1 / prior) / 2
    assert regret(y, p, out)[delay :: delay + 1].max(initial=0) <= most + 1e-9
    assert calibrator.brier_bound() == pytest.approx(most)


def test_batches_learned_at_full_speed_can_break_the_promise():
    """Why the rate is divided: 101 equal outcomes at a time, always against where the weights have gone."""
    losses, raw, size = {}, 0.05, 101
    for delay in (0, size - 1):
        calibrator, total = OnlineCalibrator(guard=False, delay=delay), 0.0
        for _ in range(120):
            asked = [calibrator.transform_one(raw, key=k) for k in range(size)]
            gains = [(y - asked[0]) ** 2 - (y - raw) ** 2 for y in (0, 1)]
            y = int(gains[1] > gains[0])
            total += sum((y - q) ** 2 - (y - raw) ** 2 for q in asked)
            for k in range(size):
                calibrator.learn_one(y, key=k)
        losses[delay] = total
        assert (calibrator.brier_bound() is None) == (delay == 0)
    assert losses[size - 1] <= size * LEAST < losses[0]


@given(st.lists(st.tuples(probabilities, st.floats(-30, 0)), min_size=5, max_size=5))
@settings(max_examples=300)
def test_the_mixture_is_mixable(experts):
    answers, logs = [e for e, _ in experts], [w for _, w in experts]
    q = mixed(logs, answers)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    for y in (0.0, 1.0):
        shared = -math.log(float(weights @ np.exp(-2 * (y - np.array(answers)) ** 2))) / 2
        assert (y - q) ** 2 <= shared + 1e-12


def test_the_mixture_is_its_plain_twin():
    rng = np.random.default_rng(5)
    y, p = (rng.random(500) < 0.3).astype(float), rng.random(500)
    experts, answers, out = Experts(bins=10, decay=0.998, prior=0.5, delay=0), [], []
    for outcome, raw in zip(y.tolist(), p.tolist(), strict=True):
        answers.append(experts.answers(raw))
        out.append(mixed(experts.weights, answers[-1]))
        experts.learn(answers[-1], outcome)
    np.testing.assert_allclose(out, aggregate(answers, y, [1 / 2] + [1 / 8] * 4), atol=1e-9)
    assert len(NAMES) == len(answers[0])


def test_what_is_wrong_is_repaired_and_what_is_right_left_alone():
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 2, 6_000)
    y = (rng.random(6_000) < truth).astype(float)
    extreme = 1 / (1 + (1 / truth - 1) ** 2)
    for p, better in ((truth, False), (extreme, True)):
        calibrator = OnlineCalibrator()
        out = calibrator.run(y, p).predictions
        assert regret(y, p, out)[-1] < (-40 if better else 1.0)
        distance = cb.lower_distance(y, out)
        assert distance < 0.01
        assert len(y) * distance <= calibrator.certificate <= calibrator.bound()
        assert calibrator.steered <= 0.01 * len(y)
        assert (calibrator.weights()["raw"] < 0.01) == better


def test_predictions_of_0_and_1_and_a_world_that_disagrees():
    calibrator = OnlineCalibrator()
    out = calibrator.run([1] * 500 + [0] * 500, [0.0] * 500 + [1.0] * 500).predictions
    assert np.isfinite(out).all()
    assert out[499] > 0.9
    assert out[999] < 0.1


def test_games_by_day(shared_data):
    """28,366 games of five leagues, days forecast whole before any of their outcomes is learned."""
    import duckdb

    games = shared_data / "fivethirtyeight_games.parquet"
    table = duckdb.sql(f"SELECT date, league, p, y FROM '{games}' WHERE y IN (0, 1) ORDER BY date, league")
    games = table.fetchnumpy()
    y, p, day, league = (np.asarray(games[name]) for name in ("y", "p", "date", "league"))
    assert len(y) == 28_366
    calibrator = OnlineCalibrator(by="league")
    out = calibrator.run(y, p, by=league, batches=day).predictions
    scores = [round(float(np.mean((y - q) ** 2)), 4) for q in (p, out)]
    assert scores == [0.2299, 0.2292]
    assert [round(float(cb.lower_distance(y, q)), 3) for q in (p, out)] == [0.018, 0.005]
    assert len(y) * cb.lower_distance(y, out) <= calibrator.certificate <= calibrator.bound()
    assert calibrator.certificate / len(y) < 0.022
    assert calibrator.steered < 20
    mlb = league == "MLB"
    assert regret(y[mlb], p[mlb], out[mlb])[-1] < 1.0  # already calibrated: the price is small
    promised = OnlineCalibrator(by="league", delay=19, guard=False)
    slower = promised.run(y, p, by=league, batches=day).predictions
    assert regret(y, p, slower)[-1] <= promised.brier_bound()
    assert round(float(np.mean((y - slower) ** 2)), 4) == 0.2292
