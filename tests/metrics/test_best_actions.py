"""Best responses and the convex function behind a table: against looking at every action."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb

payoffs = st.lists(
    st.tuples(st.integers(-4, 4).map(float), st.integers(-4, 4).map(float)), min_size=1, max_size=6
)
probabilities = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 2 / 3, 1.0]), min_size=1, max_size=8)


@given(payoffs, probabilities)
@settings(max_examples=150)
def test_the_convex_function_is_what_the_best_response_earns(table, p):
    phi, best = cb.as_score(table), cb.best_actions(p, table)
    by_hand = [max((1 - v) * u0 + v * u1 for u0, u1 in table) for v in p]
    assert phi(p) == pytest.approx(by_hand, abs=1e-12)
    assert best.expected == pytest.approx(by_hand, abs=1e-12)
    tied = [
        sum((1 - v) * u0 + v * u1 > top - 1e-10 for u0, u1 in table) > 1
        for v, top in zip(p, by_hand, strict=True)
    ]
    assert best.tied.tolist() == tied
    without, with_event = (np.array([phi.score(r, y) for r in np.linspace(0, 1, 21)]) for y in (0, 1))
    for v in p:  # proper: no other report earns more in expectation, and the truth earns phi
        earned = (1 - v) * without + v * with_event
        assert max(earned) <= phi(v) + 1e-12
        assert (1 - v) * phi.score(v, 0) + v * phi.score(v, 1) == pytest.approx(float(phi(v)), abs=1e-12)
        assert phi(v) + phi.gradient(v) * (1 - v) == pytest.approx(float(phi.score(v, 1)), abs=1e-12)


@given(payoffs, st.integers(0, 1000))
@settings(max_examples=100)
def test_as_a_payoff_it_loses_what_the_table_loses(table, seed):
    rng = np.random.default_rng(seed)
    p, y = rng.random(12), rng.integers(0, 2, 12)  # off the kinks, where the sides of a tie would matter
    phi = cb.as_score(table)
    score = cb.fixed_decision_loss(y, p, payoff=phi, gradient=phi.gradient)
    assert score == pytest.approx(cb.fixed_decision_loss(y, p, payoff=table), abs=1e-9)


def test_names_ties_and_thresholds():
    best = cb.best_actions([0.1, 0.25, 0.7], {"wait": (0, -1), "act": (-0.25, -0.25)})
    assert best.labels == ["wait", "wait", "act"]
    assert best.tied.tolist() == [False, True, False]
    assert repr(best) == "BestActions(wait: 2, act: 1; 1 tied, first taken)"
    assert best.to_dict()["actions"] == [0, 0, 1]
    phi = cb.as_score({"low": (1, 0), "never": (0.4, 0.4), "high": (0, 1)})
    assert phi.actions == ("low", "high")
    assert phi.thresholds.tolist() == [0.5]


def test_refusals():
    with pytest.raises(cb.CalibrantError, match="must be a table of actions"):
        cb.best_actions([0.5], "quadratic")
    with pytest.raises(cb.CalibrantError, match="must lie in"):
        cb.best_actions([1.5], 0.2)
    with pytest.raises(cb.CalibrantError, match="must not be missing"):
        cb.best_actions([np.nan], 0.2)
    phi = cb.as_score(0.2)
    for bad, rule in (
        ("abc", "numeric"),
        ([0.5, 1.5], "must lie in"),
        ([np.nan], "missing"),
        ([[0.1], [1, 2]], "array"),
    ):
        for question in (phi, phi.gradient, lambda v: phi.score(v, 1), lambda y: phi.score(0.5, y)):
            with pytest.raises(cb.InvalidInputError, match=rule):
                question(bad)
    with pytest.raises(cb.InvalidInputError, match="same shape"):
        phi.score([0.1, 0.2], [0, 1, 0])
    assert phi([]).shape == (0,)
    assert phi.score([[0.1], [0.9]], [0, 1]).shape == (2, 2)


@given(st.permutations([0.5, 1e-12, 1e-12, 0.0, 1 - 1e-12, 0.3, 0.6, 1.0]), st.permutations(range(4)))
@settings(max_examples=40)
def test_the_order_of_rows_decides_no_action(p, actions):
    table = np.array([[0.5, -0.6], [-1.0, -0.9], [0.5, 0.2], [0.0, 0.4]])[actions]
    best, ascending = cb.best_actions(p, table), cb.best_actions(sorted(p), table)
    place = np.searchsorted(sorted(p), p)
    assert best.actions.tolist() == ascending.actions[place].tolist()
    assert best.tied.tolist() == ascending.tied[place].tolist()
