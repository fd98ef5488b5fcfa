"""incentives: lies against honesty on the same outcomes, against complete enumeration and by law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.truthfulness.lies import BOARD, LIES, reports_of
from calibrant.truthfulness.search import Expected, Scored


def test_means_are_those_of_complete_enumeration():
    truth = np.array([0.1, 0.35, 0.35, 0.5, 0.62, 0.9])
    found = cb.incentives(truth, draws=4000, seed=3)
    p, counts = np.unique(truth, return_counts=True)
    reports = {
        name: report[np.searchsorted(p, truth)] for name, report in reports_of(None, p, counts).items()
    }
    for row in found.table:
        exact = Expected(Scored(row.measure, {}), truth)
        gain = exact(truth) - exact(reports[row.lie])
        assert abs(row.gain - gain) <= 4.5 * row.se + 1e-9, (row.measure, row.lie)


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.97, 1.0]), min_size=1, max_size=30), st.integers(0, 99)
)
@settings(max_examples=40)
def test_row_order_and_seed(values, seed):
    one = cb.incentives(values, ["brier", "atb", "level-set"], draws=20, seed=seed)
    two = cb.incentives(values[::-1], ["brier", "atb", "level-set"], draws=20, seed=seed)
    assert one == two
    assert all(np.isfinite([row.gain, row.expected, row.wins]).all() for row in one.table)


def test_pooling_to_the_mean_wins_duels_under_atb_without_a_gain():
    p = np.random.default_rng(0).beta(2, 2, 200)
    found = cb.incentives(p, draws=2000, seed=1)
    pooled = {row.measure: row for row in found.table if row.lie == "mean"}
    assert 0.57 < pooled["atb"].wins < 0.67
    assert not pooled["atb"].helps
    assert min(pooled["level-set"].wins, pooled["ece"].wins) > 0.999
    assert pooled["brier"].wins < 0.01
    for name in ("brier", "log-loss", "atb", "kernel-squared"):
        assert not found.best[name].helps
    for name in ("smooth", "kuiper", "ece", "level-set"):
        assert found.best[name].helps


def test_few_questions_are_large_wins_for_luck():
    p = np.random.default_rng(1).beta(2, 2, 20)
    table = {(r.measure, r.lie): r for r in cb.incentives(p, "brier", draws=4000, seed=1).table}
    assert 0.4 < table["brier", "sharpen 1.2"].wins < 0.5


def test_own_lies_and_names():
    found = cb.incentives([0.2, 0.7, 0.7], "level-set", lies={"half": lambda p: p / 2}, draws=50, seed=0)
    assert [row.lie for row in found.table] == ["half"]
    assert [row.lie for row in cb.incentives([0.2], "level-set", lies=["mean"], draws=50).table] == ["mean"]
    assert {row.measure for row in cb.incentives([0.2, 0.4], draws=5).table} == set(BOARD)
    assert len(LIES) == 8


def test_own_lies_see_every_prediction_and_not_the_distinct_ones_alone():
    truth = [0.1] * 9 + [0.9]
    own = cb.incentives(truth, "brier", lies={"own": lambda p: np.full(len(p), p.mean())}, seed=0).table[0]
    (theirs,) = cb.incentives(truth, "brier", lies=iter(["mean"]), seed=0).table
    assert own.gain == pytest.approx(theirs.gain, abs=1e-12)
    assert own.wins == theirs.wins


def test_prints_the_rules_and_the_seed():
    found = cb.incentives(np.linspace(0.1, 0.9, 30), ["level-set", "brier"], draws=99, seed=7)
    text = str(found)
    assert "seed 7" in text
    assert "level-set: lying helps; 'mean'" in text
    assert "Rank by brier or log-loss" in text
    assert found.to_dict()["best"]["level-set"] == "mean"


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([0.5, 1.2],), {}, "must lie in"),
        (([0.5, np.nan],), {}, "must not be missing"),
        (([0.5], "slope"), {}, "not defined when all outcomes agree"),
        (([0.5], "nonsense"), {}, "measure must be one of"),
        (([0.5],), {"lies": ["fib"]}, "lie must be one of"),
        (([0.5],), {"lies": {"fib": lambda p: p + 3}}, "must return reports in"),
        (([0.5],), {"lies": {"fib": lambda p: [0.1, 0.2]}}, "one report per prediction"),
        (([0.5],), {"lies": {"fib": 3}}, "must map names to functions"),
        (([0.5],), {"lies": {"honest": lambda p: p}}, "none of them 'honest'"),
        (([0.5],), {"lies": []}, "must name at least one lie"),
        (([0.5],), {"lies": [["mean"]]}, "lie must be one of"),
        (([0.5, 0.5],), {"lies": {"fib": lambda p: [0.1, 0.2]}}, "lie 'fib' must return the same report"),
        (([0.5],), {"draws": 0}, "draws must be a whole number"),
        (([0.5],), {"draws": 1}, "draws must be at least 2"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, options, words):
    with pytest.raises(cb.CalibrantError, match=words):
        cb.incentives(*arguments, **options)
