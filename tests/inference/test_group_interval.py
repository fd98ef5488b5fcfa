"""The interval of a group's difference: its definition, odd data, and coverage when models are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom, t

import calibrant as cb
from calibrant.inference.group_interval import row_interval, row_moments, wilson_interval

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.999, 1.0]), st.sampled_from([0.0, 0.3, 1.0, 1.0])),
    min_size=1,
    max_size=20,
)


def slow_interval(p, y):
    """The hull of Student's interval of the residuals and Wilson's of the rate, in plain steps."""
    n, r = len(y), y - p
    reach = t.ppf(0.975, max(n - 1, 1))
    gap, spread = r.mean(), (r.var(ddof=1) / n if n > 1 else np.inf)
    rate, own = y.mean(), (y.var(ddof=1) / n if n > 1 else 0.0)
    size = n
    if own > 0:
        events, others = y.sum() ** 2 / (y @ y), (1 - y).sum() ** 2 / ((1 - y) @ (1 - y))
        rarer, ratio = min(events, others), spread / own
        ratio = max(ratio, (rarer * ratio + 2) / (rarer + 2))
        size = rate * (1 - rate) / (own * ratio) * (1.959964 / reach) ** 2
    z2 = 1.959964**2
    roots = np.roots([1 + z2 / size, -(2 * rate + z2 / size), rate**2]).real
    low = min(min(roots) - p.mean(), max(gap - reach * np.sqrt(spread), -p.mean()), gap)
    high = max(max(roots) - p.mean(), min(gap + reach * np.sqrt(spread), 1 - p.mean()), gap)
    return low, high


@settings(max_examples=150, deadline=None)
@given(ROWS)
def test_the_interval_is_that_of_the_definition(rows):
    p, y = (np.array(column) for column in zip(*rows, strict=True))
    assert row_interval(p, y) == pytest.approx(slow_interval(p, y), abs=1e-5)
    low, high = row_interval(p, y)
    assert low - 1e-12 <= (y - p).mean() <= high + 1e-12


def test_audit_and_comparison_have_one_interval():
    rng = np.random.default_rng(1)
    p, g = rng.random(900), rng.integers(0, 3, 900)
    y = (rng.random(900) < p).astype(int)
    audited = {group.name: group for group in cb.audit(y, p, groups={"g": g}, draws=9).groups}
    for level in cb.compare_groups(y, p, {"g": g}, draws=9).groups:
        assert audited[f"g = {level.name}"].limits == pytest.approx((level.lower, level.upper), abs=1e-12)


def test_equal_weights_and_single_clusters_change_nothing():
    rng = np.random.default_rng(2)
    p = rng.random(50)
    y = (rng.random(50) < p).astype(float)
    alone = row_interval(p, y)
    assert row_interval(p, y, np.full(50, 3.0)) == pytest.approx(alone)
    assert row_interval(p, y, None, np.arange(50)) == pytest.approx(alone)
    doubled = row_interval(np.repeat(p, 2), np.repeat(y, 2), None, np.repeat(np.arange(50), 2))
    assert doubled == pytest.approx(alone, abs=0.01)


def test_too_little_data_has_no_interval():
    p, y = np.full(40, 0.2), np.r_[np.ones(4), np.zeros(36)]
    weight = np.linspace(1, 2, 40)
    assert np.isnan(row_interval(p, y, weight)).all()
    assert np.isnan(row_interval(p, y, None, np.arange(40) // 8)).all()
    found = cb.audit(y, p, groups={"g": np.arange(40) % 2}, sample_weight=weight, draws=9)
    assert found.groups[0].interval is None
    assert found.groups[0].written_difference()[1] == "–"
    assert found.to_dict()["groups"][0]["low"] is None


def test_real_responses_have_students_interval():
    rng = np.random.default_rng(3)
    y, p = rng.normal(5, 2, 30), rng.normal(5, 1, 30)
    low, high = row_interval(p, y, rates=False)
    r = y - p
    half = t.ppf(0.975, 29) * r.std(ddof=1) / np.sqrt(30)
    assert (low, high) == pytest.approx((r.mean() - half, r.mean() + half))
    assert row_moments(p, y).freedom[0] == pytest.approx(29)


def test_wilson_is_that_of_newcombe():
    assert np.ravel(wilson_interval(np.array([81 / 263]), np.array([263]), 1.959964)) == pytest.approx(
        [0.2553, 0.3662], abs=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("n", [10, 40, 200])
def test_coverage_given_the_predictions_when_logits_are_too_large(factor, n):
    rng = np.random.default_rng(n + factor)
    missed, sets = 0, 1000
    for _ in range(sets):
        truth = expit(rng.normal(0, 1, n))
        p = expit(factor * logit(truth))
        y = (rng.random(n) < truth).astype(float)
        low, high = row_interval(p, y)
        missed += not low <= (truth - p).mean() <= high
    assert missed <= binom.ppf(1 - 1e-4, sets, 0.06)


@given(weight=st.floats(1e3, 1e300), place=st.integers(0, 99))
@settings(max_examples=20)
def test_one_record_that_outweighs_all_others_has_no_interval(weight, place):
    y, p, w = (np.arange(100) % 5 < 2).astype(float), (np.arange(100) + 0.5) / 100, np.full(100, 1e10)
    w[place] = weight * 1e10 if weight < 1e250 else weight
    assert np.isnan(row_interval(p, y, w)).all()
    found = cb.confidence_interval(y, p, sample_weight=w, measure="in-the-large", draws=9)
    assert (found.lower, found.upper) == (-np.inf, np.inf)
    assert "too few records" in str(found)
    row = cb.evaluate(y, p, sample_weight=w, measures=["in-the-large"], draws=9)["in-the-large"]
    assert row.low is None
    assert row.high is None


def test_ten_equal_clusters_are_enough():
    """Their effective number rounds to 9.999999999999996."""
    p = np.tile(np.linspace(0.2, 0.8, 5), 10)
    y = (np.random.default_rng(0).random(50) < p).astype(float)
    clusters = np.arange(50) // 5
    assert np.isfinite(row_interval(p, y, cluster=clusters)).all()
    found = cb.confidence_interval(y, p, measure="in-the-large", clusters=clusters)
    assert -1 < found.lower < found.upper < 1
    with pytest.raises(cb.TooFewRecordsError, match="at least 10 of equal weight; got 9"):
        cb.confidence_interval(y[:45], p[:45], measure="in-the-large", clusters=clusters[:45])
