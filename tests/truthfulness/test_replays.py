"""Replays of outcomes: all of them for few predictions, and rare ones drawn by themselves for many."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import calibrant as cb
from calibrant.truthfulness import lies
from calibrant.truthfulness.lies import BOARD, LIES, reports_of

FAIR = [name for name, row in cb.measures().items() if row.fair]
CHANCES = [0.0, 1e-5, 1e-4, 0.1, 0.3, 0.5, 0.5, 0.97, 0.9999, 1.0]


def enumerated(truth, report, name):
    """Return value and chance of every set of outcomes, one by one."""
    row, forms = cb.measures()[name], []
    for y in itertools.product((0, 1), repeat=len(truth)):
        chance = float(np.prod([p if one else 1 - p for one, p in zip(y, truth, strict=True)]))
        if chance > 0:
            value = float(row.function.core(cb.Forecasts(list(y), report), **row.options))
            forms.append((abs(value - row.ideal) if row.signed else value, chance))
    return np.array(forms).T


@pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")
@given(
    st.lists(st.sampled_from(CHANCES), min_size=1, max_size=4),
    st.sampled_from([*BOARD, "ubse", "lower-distance", "cdl", "in-the-large"]),
    st.sampled_from(list(LIES)),
)
@settings(max_examples=120, deadline=None)
def test_few_predictions_are_enumerated(truth, name, lie):
    asked = cb.incentives(truth, name, lies=[lie], draws=2, seed=1)
    (row,) = asked.table
    p, counts = np.unique(truth, return_counts=True)
    report = reports_of([lie], p, counts)[lie][np.searchsorted(p, truth)]
    (honest, chances), (lying, _) = enumerated(truth, truth, name), enumerated(truth, report, name)
    assert asked.enumerated
    assert row.se == 0
    assert row.honest == pytest.approx(chances @ honest, abs=1e-9)
    assert row.gain == pytest.approx(chances @ (honest - lying), abs=1e-9)
    gains, slack = honest - lying, 1e-12 * (1 + abs(honest))
    assert row.wins == pytest.approx(chances @ ((gains > slack) + 0.5 * (abs(gains) <= slack)), abs=1e-9)


def test_ten_predictions_are_enumerated_and_many_are_not():
    assert cb.incentives(np.linspace(0.1, 0.9, 10), "level-set", draws=5).draws == 1024
    assert not cb.incentives(np.linspace(0.1, 0.9, 11), "level-set", draws=5).enumerated
    assert cb.incentives([0.0] * 50 + [1.0] * 50 + [0.3] * 40, "level-set", draws=5).draws == 41


@pytest.mark.parametrize("name", FAIR)
def test_truthful_measures_are_those_of_the_population_plus_a_constant(name):
    rng = np.random.default_rng(3)
    for _ in range(20):
        truth, report = rng.choice(CHANCES, (2, 5))
        row = cb.measures()[name]
        (honest, chances), (lying, _) = enumerated(truth, truth, name), enumerated(truth, report, name)

        def population(at, truth=truth, row=row):
            return float(row.function.core(cb.Forecasts(truth, at), **row.options))

        assert chances @ (honest - lying) == pytest.approx(population(truth) - population(report), abs=1e-11)


def test_a_rare_outcome_that_no_draw_shows_makes_no_lie_helpful():
    for seed in range(20):
        assert not cb.incentives([0.5, 0.9999], ["brier"], seed=seed).best["brier"].helps
    rare = 10.0 ** -np.random.default_rng(0).uniform(3.5, 6, 25)
    asked = cb.incentives(np.concatenate((rare, 1 - rare)), FAIR, seed=2)
    assert not asked.enumerated
    assert not any(row.helps for row in asked.table)


@pytest.mark.parametrize("name", ["level-set", "smooth", "kuiper"])
def test_rare_outcomes_are_drawn_with_their_chances(monkeypatch, name):
    truth = np.array([0.5, 0.3, 0.3, 1e-4, 2e-4, 2e-4, 0.9995, 1 - 1e-6])
    exact = cb.incentives(truth, name)
    monkeypatch.setattr(lies, "MAX_ENUMERATED_ON_REQUEST", 1)
    drawn = cb.incentives(truth, name, draws=200, seed=5)
    assert not drawn.enumerated
    assert drawn.draws == 200
    for one, other in zip(exact.table, drawn.table, strict=True):
        assert abs(one.gain - other.gain) <= 4.5 * other.se + 1e-9, one.lie
        assert abs(one.wins - other.wins) <= 0.16


def test_the_law_of_draws_with_a_rare_outcome():
    p, counts = np.array([0.02, 0.4, 0.95]), np.array([3, 1, 2])
    rare = np.array([True, False, True])
    usual = np.where(rare, np.round(p), p)
    events = lies._with_rare(p, usual, counts, rare)(np.random.default_rng(0), 40_000)
    table = lies._everything(p, counts, 100)
    chances = np.prod(binom.pmf(table, counts, p), axis=1)
    assert chances.sum() == pytest.approx(1)
    chances[(table[:, 0] == 0) & (table[:, 2] == 2)] = 0
    chances /= chances.sum()
    for row, chance in zip(table, chances, strict=True):
        share = float(np.mean((events == row).all(axis=1)))
        assert abs(share - chance) <= 4.5 * (chance * (1 - chance) / 40_000) ** 0.5, row


def _fails(p):
    raise RuntimeError("no")


@pytest.mark.parametrize("lie", [_fails, lambda p: "text", lambda p, q: p])
def test_a_lie_that_raises_is_refused_by_name(lie):
    with pytest.raises(cb.InvalidInputError, match=r"lie 'fib' must be a function .* it raised"):
        cb.incentives([0.2, 0.5], "level-set", lies={"fib": lie})


@pytest.mark.parametrize("measure", [lambda y, p: 1 / 0, lambda y, p: "text", lambda y: 0.0])
def test_a_measure_that_raises_is_refused_by_name(measure):
    with pytest.raises(cb.InvalidInputError, match=r"measure '<lambda>' must be a function .* it raised"):
        cb.truthfulness_gap(measure, [0.2, 0.5])
