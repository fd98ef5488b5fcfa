"""Comparison of groups at equal predictions: against enumeration, and under models that are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom

import calibrant as cb
from calibrant.groups.stratified import (
    StratifiedScores,
    compare_pair,
    difference_test,
    prediction_strata,
    recalibrated_logits,
    shuffled_sums,
)
from tests.oracles import stratified as oracle

LEVELS = [0.0, 0.01, 0.1, 0.3, 0.3, 0.5, 0.8, 1.0]
ROWS = st.lists(
    st.tuples(st.sampled_from(LEVELS), st.integers(0, 1), st.integers(0, 2)), min_size=2, max_size=8
)


def columns(rows):
    p, y, group = (np.array(one) for one in zip(*rows, strict=True))
    return p.astype(float), y.astype(float), group


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([*LEVELS, 0.2, 0.25, 0.35]), min_size=1, max_size=30))
def test_strata_are_those_of_the_definition(values):
    p = np.sort(values)
    _, expected = np.unique(oracle.strata(p), return_inverse=True)
    assert prediction_strata(p).tolist() == expected.tolist()


@settings(max_examples=40, deadline=None)
@given(ROWS, st.booleans())
def test_recalibration_is_the_penalized_optimum(rows, weighted):
    p, y, _ = columns(rows)
    w = np.linspace(0.5, 2, len(p)) if weighted else np.ones(len(p))
    assert expit(recalibrated_logits(p, y, w)) == pytest.approx(oracle.recalibrated(p, y, w), abs=2e-4)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_covariance_and_pvalue_are_those_of_all_permutations(rows):
    p, y, group = columns(rows)
    scores = StratifiedScores.of(p, y, group, 3)
    assume(scores.rank > 0)
    stratum = oracle.strata(p)
    e = oracle.residuals(y, oracle.recalibrated(p, y, np.ones(len(p))), group, stratum)

    def distance(sums, covariance):
        return sums @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ sums

    true, covariance = oracle.pvalue(e, group, stratum, distance)
    size = len(covariance)
    assert scores.covariance[:size, :size] == pytest.approx(covariance, abs=1e-3)
    pvalue, _ = difference_test(scores, 2000, 1)
    assert pvalue == pytest.approx(true, abs=0.06)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_pairs_have_the_law_given_the_events_of_every_stratum(rows):
    p, y, group = columns(rows)
    group = np.minimum(group, 1)
    scores = StratifiedScores.of(p, y, group, 2)
    assume(scores.rank > 0)
    rates = oracle.recalibrated(p, y, np.ones(len(p)))
    pair = compare_pair(scores, 0.95)
    assert pair.pvalue == pytest.approx(oracle.pair_pvalue(y, rates, group, oracle.strata(p)), abs=2e-3)
    assert pair.lower <= pair.shift <= pair.upper


def test_compiled_shuffles_have_the_law_of_the_others():
    rng = np.random.default_rng(0)
    values, group = rng.normal(size=9), np.arange(9) % 3
    fast = np.zeros((20_000, 3))
    shuffled_sums.machine_code()(rng.random((20_000, 9)), values, group, fast)
    plain = rng.permuted(np.tile(values, (20_000, 1)), axis=1) @ np.eye(3)[group]
    assert np.allclose(fast.sum(axis=1), values.sum())
    assert np.allclose(fast.mean(axis=0), values.mean() * 3, atol=0.05)
    assert np.allclose(np.cov(fast.T), np.cov(plain.T), atol=0.1)


def test_no_overlap_is_said_and_not_tested():
    p = np.concatenate([np.linspace(0.1, 0.2, 32), np.linspace(0.7, 0.9, 32)])
    y = (np.arange(64) % 3 == 0).astype(float)
    found = cb.compare_groups(y, p, np.repeat(["a", "b"], 32))
    assert not found.comparable
    assert found.pvalue == 1.0
    assert "their predictions overlap too little" in str(found)


def test_draws_are_added_where_chance_could_flip_the_verdict():
    rng = np.random.default_rng(4)
    p = rng.random(400)
    y, group = (rng.random(400) < p).astype(float), rng.integers(0, 3, 400)
    for shift in np.linspace(0, 0.25, 60):
        moved = np.where((group == 0) & (rng.random(400) < shift), 1.0, y)
        found = cb.compare_groups(moved, p, group, draws=99)
        if found.draws > 99:
            assert found.draws == 990
            return
    raise AssertionError("no borderline case was met")


def wrong_model(kind, n, rng):
    """Return predictions and true rates: logits times a factor, two extreme values, or a step curve."""
    if kind == "two":
        high = rng.integers(0, 2, n) == 1
        return np.where(high, 0.98, 0.02), np.where(high, 0.7, 0.3)
    if kind == "step":
        p = rng.random(n)
        return p, np.where(p < 0.5, 0.2, 0.8)
    truth = expit(rng.normal(0, 1, n))
    return expit(3 * logit(truth)), truth


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["x 3", "two", "step"])
@pytest.mark.parametrize("follows", [False, True])
def test_random_labels_raise_no_alarm_under_models_that_are_wrong(kind, follows):
    rng = np.random.default_rng(7)
    alarms, sets = np.zeros(2), 300
    for _ in range(sets):
        p, truth = wrong_model(kind, 200, rng)
        y = (rng.random(200) < truth).astype(float)
        noise = rng.normal(0, 0.3, 200)
        group = np.digitize(p + noise, [0.3, 0.7]) if follows else rng.integers(0, 3, 200)
        found = cb.compare_groups(y, p, group, draws=99)
        alarms += [found.pvalue <= 0.05, min(pair.adjusted for pair in found.differences) <= 0.05]
    assert np.all(alarms <= binom.ppf(1 - 1e-4, sets, 0.06))
