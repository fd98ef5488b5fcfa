"""Any schedule of forecasts, late, forgotten and learned outcomes and restarts: the account is as defined."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import MAKERS, answer

import calibrant as cb
from calibrant.online import DecisionLossForecaster, ExpectedErrorForecaster, OnlineCalibrator

steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "learn", "learn", "learn", "forget", "reload"]),
        st.integers(0, 50),
        st.one_of(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.floats(0, 1)),
    ),
    max_size=120,
)


def played(player, schedule):
    """Follow a schedule; return the player, and raw, answer and outcome of all learned rounds, in order."""
    waiting, learned, number = {}, [], 0
    for what, pick, p in schedule:
        if what == "ask":
            key = number if pick % 2 else f"k{number}"
            waiting[key] = (p, answer(player, p, key=key))
            number += 1
        elif what == "reload":
            player = type(player).from_json(player.to_json())
        elif waiting:
            key = sorted(waiting, key=str)[pick % len(waiting)]
            raw, said = waiting.pop(key)
            if what == "forget":
                player.forget(key)
            else:
                outcome = int((pick * 7919) % 13 < 13 * raw) if pick % 3 else int(said < 0.5)
                player.learn_one(outcome, key=key)
                learned.append((raw, said, outcome))
    assert player.pending == len(waiting)
    assert player.rounds == len(learned)
    return player, learned


def biases(learned):
    """T times the expected calibration error: the sum over distinct answers of the absolute bias."""
    sums = defaultdict(float)
    for _, said, outcome in learned:
        sums[said] += outcome - said
    return sum(map(abs, sums.values()))


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
@given(schedule=steps)
@settings(max_examples=25, deadline=None)
def test_the_account_of_any_schedule(maker, schedule):
    player, learned = played(maker(), schedule)
    if not learned:
        assert player.certificate in (0, None)
        return
    said, y = [q for _, q, _ in learned], [outcome for *_, outcome in learned]
    if isinstance(player, ExpectedErrorForecaster):
        assert player.certificate >= biases(learned) - 1e-9  # epochs may answer the same value: they add
        if player.horizon is not None:
            assert player.certificate == pytest.approx(biases(learned))
    elif isinstance(player, DecisionLossForecaster):
        forecasts = cb.Forecasts(y, said)
        assert player.certificate == pytest.approx(len(y) * cb.decision_loss.core(forecasts).value, abs=1e-9)
    elif player.certificate is not None:
        assert len(y) * cb.lower_distance(y, said) <= player.certificate + 1e-6
        bound = player.bound()
        assert bound is None or player.certificate <= bound + 1e-9
    if isinstance(player, OnlineCalibrator) and player.brier_bound() is not None and not player.pending:
        regret = sum((o - q) ** 2 - (o - raw) ** 2 for raw, q, o in learned)
        assert regret <= player.brier_bound() + 1e-9


@given(schedule=steps, delay=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_the_brier_promise_of_any_schedule(schedule, delay):
    """While the bound applies it holds whenever nothing is pending, forgotten outcomes or not."""
    player, waiting, regret = OnlineCalibrator(guard=False, delay=delay), {}, 0.0
    for number, (what, pick, p) in enumerate(schedule):
        if what == "ask":
            waiting[number] = (p, player.transform_one(p, key=number))
        elif what != "reload" and waiting:
            key = sorted(waiting)[pick % len(waiting)]
            raw, q = waiting.pop(key)
            if what == "forget":
                player.forget(key)
                continue
            outcome = max((0, 1), key=lambda o: (o - q) ** 2 - (o - raw) ** 2)
            player.learn_one(outcome, key=key)
            regret += (outcome - q) ** 2 - (outcome - raw) ** 2
        if not waiting and player.brier_bound() is not None:
            assert regret <= player.brier_bound() + 1e-9
    assert np.isfinite(regret)
