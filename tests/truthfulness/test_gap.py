"""truthfulness_gap: numbers of the paper and of complete enumeration; the registry by search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.truthfulness import expected as by_hand

import calibrant as cb
from calibrant.truthfulness.search import Expected, Scored, all_outcomes, chances, pools

ROWS = {name: row for name, row in cb.measures().items() if not row.needs_both_outcomes}
QUICK = [name for name, row in ROWS.items() if row.null.batch is not None]
SLOW = {"low-degree", "convolved"}


def callable_of(name: str):
    """The measure as a plain function, so that nothing is known of it and only the search can tell."""
    row = ROWS[name]
    return lambda y, p: row.function(y, p, **row.options)


def test_all_outcomes_and_all_pools():
    assert [len(pools(n)) for n in range(1, 7)] == [1, 2, 5, 15, 52, 203]
    assert all(len({tuple(labels) for labels in pools(n)}) == len(pools(n)) for n in range(1, 7))
    assert len(pools(9)) == 9
    outcomes = all_outcomes(5)
    assert len(np.unique(outcomes, axis=0)) == 32
    assert chances(outcomes, np.array([0.1, 0.9, 0.5, 0, 1])).sum() == pytest.approx(1)


probability = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 0.1, 0.3, 0.7]), st.floats(0, 1))


@given(st.data(), st.sampled_from(sorted(set(ROWS) - SLOW)))
@settings(max_examples=150)
def test_expected_values_are_those_of_one_call_per_outcome(data, name):
    n = data.draw(st.integers(1, 3))
    truth = data.draw(st.lists(probability, min_size=n, max_size=n))
    report = data.draw(st.lists(probability, min_size=n, max_size=n))
    found = Expected(Scored(name, {}), np.array(truth))(np.array(report))
    assert found == pytest.approx(by_hand(name, truth, report), abs=1e-5 if "lower" in name else 1e-9)


def test_absolute_measures_of_three_rounds_are_best_met_at_the_median_count():
    """The gaps themselves are compared with another program's in the tests of the reproductions."""
    for name in ("ks", "lower-distance"):
        found = cb.truthfulness_gap(name, [0.3, 0.6, 0.8], budget=60)
        assert found.report == pytest.approx([2 / 3] * 3, abs=1e-4)
        assert found.gap == pytest.approx(found.honest - found.best)


POOLED_AND_HONEST = {  # expected on Table 1's two rounds, (.25, .75): of (.5, .5), and of the truth
    "level-set": (0.1875, 0.375),
    "ks": (0.1875, 0.28125),
    "kuiper": (0.1875, 0.28125),
    "l1-atb": (0.1875, 0.28125),
    "smooth": (0.1875, 0.234375),
    "kernel": (0.1875, 0.256281),
    "lower-distance": (0.1875, 0.2734375),
    "upper-distance": (0.1875, 0.34375),
    "interval": (0.1875, 0.359375),
    "convolved": (0.1875, 0.321391),
    "cdl": (0.375, 0.4375),
    "atb": (0.09375, 0.09375),
}


@pytest.mark.parametrize("name", POOLED_AND_HONEST)
def test_what_other_measures_say_on_the_two_rounds_of_table_1(name):
    expected = Expected(Scored(name, {}), np.array([0.25, 0.75]))
    found = expected(np.array([0.5, 0.5])), expected(np.array([0.25, 0.75]))
    assert found == pytest.approx(POOLED_AND_HONEST[name], abs=6e-7)


def test_the_squared_level_set_error_falls_at_two_rounds_only():
    assert cb.truthfulness_gap("level-set", [0.3], norm=2).gap < 1e-9
    two = cb.truthfulness_gap("level-set", [0.25, 0.75], norm=2)
    assert (two.honest, two.best) == pytest.approx((0.1875, 0.09375))


def test_one_round_is_an_absolute_loss_and_the_median_wins():
    others = {"lower-distance", "upper-distance", "interval"}
    for name in others | set(QUICK) - {"atb", "ubse", "kernel-squared", "brier", "log-loss", "o/e"}:
        found = cb.truthfulness_gap(name, [0.3])
        assert (found.honest, found.best, found.report[0]) == pytest.approx((0.42, 0.3, 0), abs=1e-9)
    worst = cb.truthfulness_gap("cdl", [0.3])
    assert (worst.honest, worst.best, worst.report[0]) == pytest.approx((0.6, 0.3, 0), abs=1e-9)


def test_reports_without_a_value_are_no_lies():
    """O/E has no value where every report is 0."""
    found = cb.truthfulness_gap("o/e", [0.3], budget=0.3)
    assert found.honest == pytest.approx(1.4)
    assert found.report[0] > 0
    with pytest.raises(cb.InvalidInputError, match="truth must have a value under 'o/e'"):
        cb.truthfulness_gap("o/e", [0.0, 0.0], budget=0.1)


LIES = {1: [[0.0]], 2: [[0.5, 0.5], [0.0, 1.0]], 3: [[2 / 3] * 3, [0.5667] * 3]}
TRUTHS = {1: [0.3], 2: [0.25, 0.75], 3: [0.3, 0.6, 0.8]}


@pytest.mark.parametrize("name", ROWS)
def test_the_registry_tells_the_truth(name):
    """By search on the plain function, not by the proof that the claim itself opens."""
    claim = ROWS[name].truthful
    if claim in ("no", "approximate"):
        tried = [cb.truthfulness_gap(name, TRUTHS[n], reports=LIES[n]) for n in LIES]
        assert max(found.gap for found in tried) > 1e-3
        assert claim == "no" or min(found.ratio for found in tried) > 0.5
    else:
        for truth in (TRUTHS[2], [0.1, 0.5], TRUTHS[3]):
            found = cb.truthfulness_gap(callable_of(name), truth, budget=0.5)
            assert found.gap <= 1e-9
            assert found.proof == "search"
            assert found.strict == (claim == "strict")
        in_turn = cb.truthfulness_gap(name, [0.5, 0.5], sequential=True)
        assert (in_turn.gap <= 1e-9) == (claim == "strict")


def test_ties_are_seen_when_outcomes_are_told_as_they_come():
    every = cb.truthfulness_gap("level-set", [0.5], sequential=True)  # whatever is reported, E|y - r| is 1/2
    assert every.gap <= 1e-9
    assert not every.strict
    assert cb.truthfulness_gap("brier", [0.5, 1.0, 0.25], sequential=True, budget=1.0).strict


def test_told_outcomes_as_they_go_a_liar_gains_under_atb():
    even = cb.truthfulness_gap("atb", [0.5, 0.5], sequential=True)
    assert (even.honest, even.best) == pytest.approx((0.125, 0.09375), abs=1e-8)
    assert even.policy == pytest.approx({"": 0.5, "0": 0.25, "1": 0.75}, abs=1e-3)
    uneven = cb.truthfulness_gap("atb", [0.25, 0.75], sequential=True)
    assert uneven.best == pytest.approx(0.065034, abs=1e-6)
    kernel = cb.truthfulness_gap("kernel-squared", [0.5, 0.5], sequential=True)
    assert kernel.best == pytest.approx(0.091686, abs=1e-6)


def test_a_proof_is_not_claimed_where_options_leave_the_family():
    assert cb.truthfulness_gap("atb", [0.25, 0.75]).proof == "decomposition"
    assert not cb.truthfulness_gap("atb", [0.25, 0.75]).strict
    left = cb.truthfulness_gap("atb", [0.25, 0.75], norm=1)
    assert left.proof == "search"
    assert left.gap == pytest.approx(0.09375)


@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from(["atb", "ubse", "kernel-squared"]))
@settings(max_examples=200)
def test_the_decomposition(n, seed, name):
    """E[CAL(r, y)] = CAL(r, p) + sum p (1 - p) / n^2 for reports with ties (Lemma 3.3, Theorem 4.3)."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    report = rng.choice(np.concatenate((truth, [0, 0.5, 1])), n)
    scored = Scored(name, {"bins": min(n, 3)} if name == "ubse" else {})
    expected = Expected(scored, truth)
    noise = float(truth @ (1 - truth)) / n**2
    assert expected(report) == pytest.approx(expected.of_population(report) + noise, abs=1e-14)


def quantile_squares(y, p):
    """Two bins of near equal counts, squared gaps weighted by the bins: ties averaged over both orders."""
    y, p = np.asarray(y, float), np.asarray(p, float)
    from itertools import permutations

    orders = [o for o in permutations(range(len(p))) if all(np.diff(p[list(o)]) >= 0)]
    parts = [np.array_split((y - p)[list(o)], 2) for o in orders]
    return float(np.mean([sum(len(q) / len(p) * q.mean() ** 2 for q in pair) for pair in parts]))


def test_unequal_quantile_bins_reward_a_lie():
    found = cb.truthfulness_gap(quantile_squares, [0.45, 0.01, 0.06], budget=200)
    assert found.gap >= 0.026
    assert found.measure == "quantile_squares"


def test_normalised_cross_entropy_is_not_truthful():
    """Where all outcomes agree it has no value; a constant there says nothing of the report."""

    def normalised(y, p):
        return cb.log_loss(y, p, normalised=True) if 0 < np.mean(y) < 1 else 0.0

    def expected(truth, report):
        outcomes = all_outcomes(len(truth))
        weights = chances(outcomes, np.array(truth))
        return sum(w * normalised(y, report) for w, y in zip(weights, outcomes, strict=True))

    found = cb.truthfulness_gap(normalised, [0.25, 0.75], budget=200)
    assert found.gap == pytest.approx(0.065336, abs=1e-6)
    assert found.report == pytest.approx([0.1, 0.9], abs=1e-4)  # what the probabilities are, given one event
    assert expected([0.25, 0.75], [0.1, 0.9]) == pytest.approx(found.best, abs=1e-9)
    row = cb.measures()["log-loss"]
    assert row.fair_with({})
    assert not row.fair_with({"normalised": True})
    with pytest.raises(cb.CalibrantError, match="not defined when all outcomes agree"):
        cb.truthfulness_gap("log-loss", [0.25, 0.75], normalised=True)


def test_results_print_as_sentences():
    lie = cb.truthfulness_gap("smooth", [0.25, 0.75])
    assert str(lie) == (
        "smooth: a forecaster who knows the truth 0.25, 0.75 gains at least 0.046875, 20% by reporting "
        "0.5, 0.5. Expected value 0.234375 when honest, 0.187500 with the lie."
    )
    assert "gains nothing by lying (proved by decomposition); other reports do as well" in str(
        cb.truthfulness_gap("atb", [0.25, 0.75])
    )
    assert "sees each outcome" in str(cb.truthfulness_gap("atb", [0.5, 0.5], sequential=True))
    assert lie.to_dict()["report"] == pytest.approx([0.5, 0.5])


def test_a_short_budget_ends_the_search_and_says_so():
    found = cb.truthfulness_gap("lower-distance", [0.3, 0.6, 0.8, 0.9], budget=0.2)
    assert not found.finished
    assert found.honest > 0


def test_the_worst_truth_on_a_grid():
    found = cb.worst_truth("level-set", 2)
    assert found.truth == pytest.approx((0.45, 0.5))
    assert found.gap == pytest.approx(0.2475)
    assert cb.worst_truth("brier", 2).gap < 1e-9


def test_same_seed_same_result():
    one, two = (cb.truthfulness_gap("kuiper", [0.2, 0.4, 0.9], seed=5, budget=60) for _ in range(2))
    assert one == two


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("slope", [0.5]), "not defined when all outcomes agree"),
        (("nonsense", [0.5]), "measure must be one of"),
        (("level-set", [1.5]), "must lie in"),
        (("level-set", [np.nan]), "must not be missing"),
        (("level-set", []), "must not be empty"),
        (("level-set", [0.5] * 13), "at most 12 rounds"),
        ((lambda y, p: np.nan, [0.5]), "must return a finite number"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, words):
    with pytest.raises(cb.CalibrantError, match=words):
        cb.truthfulness_gap(*arguments)


def test_bad_options_are_refused():
    with pytest.raises(cb.CalibrantError, match="at most 4 rounds"):
        cb.truthfulness_gap("level-set", [0.5] * 5, sequential=True)
    with pytest.raises(cb.CalibrantError, match="one row per report of 2 rounds"):
        cb.truthfulness_gap("level-set", [0.5, 0.5], reports=[[0.5]])
    with pytest.raises(cb.CalibrantError, match="budget must be a positive number"):
        cb.truthfulness_gap("level-set", [0.5], budget=0)
    with pytest.raises(cb.CalibrantError, match="n must be a whole number from 1 to 3"):
        cb.worst_truth("level-set", 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_three_rounds_take_about_five_seconds(name):
    """All but two searches come to their end in that time; those two say that they did not."""
    import time

    began = time.process_time()
    found = cb.truthfulness_gap(name, [0.3, 0.6, 0.8], **({} if name in SLOW else {"budget": 600}))
    assert time.process_time() - began < 7
    assert found.finished == (name not in SLOW)


def test_sequential_search_finds_pooled_reports():
    """Reporting the mean every time is exactly calibrated on these outcomes, a tie that descent misses."""
    found = cb.truthfulness_gap("lower-distance", [0.5, 0, 1], sequential=True, budget=1.5)
    assert found.gap == pytest.approx(1 / 6, abs=1e-6)
