"""Known answers, found by an independent implementation."""

from __future__ import annotations

import numpy as np
import pytest
from streams import FIVE, TEN

import calibrant as cb
from calibrant.online import (
    DecisionLossForecaster,
    DistanceForecaster,
    ExpectedErrorForecaster,
    OnlineCalibrator,
)
from calibrant.online.bins import counter_uniform, counter_uniforms
from calibrant.online.bounds import decision_loss_bins, decision_loss_bound, expected_error_bound
from calibrant.online.distance import Grid
from reproduce.adversaries import against_grid


def test_distance_forecaster():
    forecaster = DistanceForecaster()
    run = forecaster.run(TEN)
    assert run.predictions.tolist() == [0.5, 0.25, 0.75, 0.75, 0.75, 0.25, 0.25, 0.125, 0.375, 0.625]
    assert forecaster.certificate == run.certificate[-1] == 3.125
    assert forecaster._grid.points == [0, 0.25, 0.5, 0.75, 1]
    assert forecaster._grid.charges == [0, -0.75, 0, 0, 0]


def test_against_the_opposite():
    forecaster = DistanceForecaster()
    for _ in range(1000):
        forecaster.learn_one(int(forecaster.predict_one() < 0.5))
    assert forecaster.certificate == 13.654296875


@pytest.mark.slow
def test_against_the_opposite_for_a_million_rounds():
    for name in ("opposite", "greedy"):
        assert against_grid(name, 10**6).certificates[-1] == 28.657243728637695


@pytest.mark.parametrize(("rounds", "certificate"), [(1000, 43.796875), (10**6, 1438.8486328125)])
def test_blocks(rounds, certificate):
    forecaster = DistanceForecaster()
    forecaster.run((np.arange(rounds) // int(rounds**0.5)) & 1)
    assert forecaster.certificate == certificate


def test_coins():
    first = [0.6524484863740322, 0.03401170130434639, 0.8429655109060831, 0.781499285280747]
    assert [counter_uniform(0, t) for t in range(4)] == counter_uniforms(0, 0, 4).tolist() == first
    assert counter_uniform(1, 0) == 0.36818951565166946
    seed = 2**63 + 12345
    assert [counter_uniform(seed, t) for t in range(2**33, 2**33 + 50)] == counter_uniforms(
        seed, 2**33, 50
    ).tolist()


def test_bins():
    quadratic = ExpectedErrorForecaster(bins=4, seed=0)
    start = [0.625, 0.875, 0.875, 0.875, 0.625]
    assert quadratic.run(TEN * 2).predictions.tolist() == start + [0.625, 0.375, 0.375] + [0.625] * 12
    assert quadratic._tables[0].answers == [[0, 2, 15, 3]]
    assert quadratic._tables[0].events == [[0, 2, 8, 2]]
    exponential = DecisionLossForecaster(bins=4, seed=0).run(TEN * 2).predictions.tolist()
    assert exponential == start + [0.375, 0.125, 0.375] + [0.625] * 12


def test_aggregate():
    y, p = np.array(TEN * 2), np.array(FIVE * 4)
    out = OnlineCalibrator(guard=False).run(y, p).predictions
    first = [0.20656404000717937, 0.7996921466213803, 0.5211219306355498, 0.8997302370187116]
    first += [0.11736750644470428, 0.2661139806132815]
    np.testing.assert_allclose(out[:6], first, rtol=1e-14)
    assert np.sum((y - out) ** 2) == pytest.approx(2.644870717177455, abs=1e-13)


def test_guard():
    grid = Grid(slack=0.25)
    p = np.array(FIVE * 4)
    passed, _, steered = grid.run(np.array(TEN * 2, dtype=float), p, np.arange(1, 21))
    assert passed.tolist() == p.tolist()
    assert grid.certificate == pytest.approx(4.4)
    assert not steered.any()
    assert grid.points == [0, 0.25, 0.5, 0.75, 1]


def test_bounds():
    assert round(decision_loss_bound(10**6, 80)) == 31476
    assert expected_error_bound(10**6, 100) == 15000
    found = {t: (m := decision_loss_bins(t), round(decision_loss_bound(t, m))) for t in (10**3, 10**4, 10**5)}
    assert found == {10**3: (5, 559), 10**4: (12, 2235), 10**5: (31, 8518)}


def test_the_rooms_are_found_from_the_top():
    assert cb.online.OnlineCalibrator is OnlineCalibrator
    assert cb.online.Monitor is cb.Monitor
    assert cb.online.GroupMonitor is cb.GroupMonitor
    with pytest.raises(AttributeError, match="nonsense"):
        cb.online.nonsense  # noqa: B018
    for name in cb.online.__all__:
        assert (getattr(cb.online, name).__doc__ or "").strip()
    assert sorted(dir(cb.online)) == cb.online.__all__
