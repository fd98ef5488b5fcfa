"""The upper and the true distance against all partitions, and their brackets where those are too many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import distance as oracle
from samples import samples

import calibrant as cb
from calibrant.kernels.partitions import LevelMasses, best_grouping, contiguous_groups, grouping_cost
from calibrant.metrics.distance import upper as module
from calibrant.metrics.distance.lower import level_masses

certify = cb.upper_distance.core


@given(sample=samples(max_size=7))
@settings(max_examples=60)
def test_equals_the_best_of_all_groupings(sample):
    f = sample.forecasts
    found = certify(f)
    assert found.exact
    assert found.value == pytest.approx(oracle.upper_distance(f.values, f.weights, f.outcomes), abs=1e-12)
    groups = [np.flatnonzero(found.details["group"] == g) for g in range(found.details["group"].max() + 1)]
    attained = sum(oracle.group_cost(g, f.values, f.weights, f.outcomes) for g in groups)
    assert attained == pytest.approx(found.value, abs=1e-12)


@given(sample=samples(max_size=8))
@settings(max_examples=60)
def test_runs_are_the_best_of_all_interval_groupings(sample):
    f = sample.forecasts
    runs = contiguous_groups(level_masses(f), np.arange(f.levels + 1))
    slow = min(
        sum(oracle.group_cost(b, f.values, f.weights, f.outcomes) for b in bins)
        for bins in oracle.interval_partitions(f.levels)
    )
    assert grouping_cost(level_masses(f), runs) == pytest.approx(slow, abs=1e-12)


@given(sample=samples(max_size=9))
@settings(max_examples=40)
def test_the_bracket_holds_the_exact_value(sample):
    f = sample.forecasts
    exact = best_grouping(level_masses(f))[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "EXACT_GROUPS", 0)
        patch.setattr(module, "EXACT_RUNS", 4)
        found = certify(f, time_limit=0)
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-12
    groups = [np.flatnonzero(found.details["group"] == g) for g in range(found.details["group"].max() + 1)]
    attained = sum(oracle.group_cost(g, f.values, f.weights, f.outcomes) for g in groups)
    assert attained == pytest.approx(found.value, abs=1e-12)


def test_many_levels_give_a_bracket_that_says_so():
    rng = np.random.default_rng(0)
    v = rng.random(20_000)
    f = cb.Forecasts(rng.random(20_000) < v**2, v)
    found = certify(f)
    assert not found.exact
    assert 0.1 < found.lower <= found.value == found.upper < 0.2


@given(sample=samples(max_size=6), data=st.data())
@settings(max_examples=60)
def test_true_distance_is_the_best_of_all_partitions_of_the_points(sample, data):
    n = len(sample.p)
    # records of one prediction are shared out among up to two points
    ids = np.array([f"{v!r}/{data.draw(st.integers(0, 1))}" for v in sample.p])
    names = np.unique(ids)
    rows = [ids == name for name in names]
    w = np.array([sample.weights[r].sum() for r in rows])
    a = np.array([(sample.weights * sample.y)[r].sum() for r in rows])
    v = np.array([sample.p[r][0] for r in rows])
    found = cb.certified_distance(sample.y, sample.p, ids, sample_weight=sample.w)
    assert found.exact
    assert found.value == pytest.approx(oracle.upper_distance(v, w, a), abs=1e-12)
    assert n >= len(found.details["points"]) == len(names)


def test_true_distance_of_many_points_lies_between_the_bounds():
    rng = np.random.default_rng(1)
    p = rng.integers(0, 11, 400) / 10
    y = rng.random(400) < p**2
    found = cb.certified_distance(y, p, rng.permutation(400), time_limit=0)
    upper = certify(cb.Forecasts(y, p))
    assert upper.exact
    assert cb.lower_distance(y, p) - 1e-6 <= found.lower <= found.value <= upper.value
    assert not found.exact


def test_records_of_weight_zero_do_not_count():
    found = cb.certified_distance([0, 1, 1], [0.4, 0.4, 0.9], ["a", "b", "c"], sample_weight=[1, 1, 0])
    assert found.details["points"].tolist() == ["a", "b"]
    assert found.value == pytest.approx(0.1)


def test_bad_ids_are_refused_by_the_row_of_the_user():
    y, p, ids = [0, np.nan, 1, 1, 0], [0.2, 0.3, 0.8, 0.9, 0.2], ["a", "b", "c", "c", "a"]
    with pytest.raises(cb.CalibrantError, match=r"y_prob must be the same.* got 0.9 in row 3 \(1 row\)"):
        cb.distance_to_calibration(y, p, ids, missing="drop")
    with pytest.raises(cb.CalibrantError, match=r"ids must not be missing; got nan in row 3 \(1 row\)"):
        cb.distance_to_calibration(y, p, [1, 2, 3, np.nan, 1], missing="drop")


def test_predictions_may_be_a_pair_of_columns():
    y, p = np.array([0, 1, 1, 0]), np.array([0.4, 0.4, 0.6, 0.6])
    pair = np.column_stack((1 - p, p))
    assert cb.distance_to_calibration(y, pair, range(4)) == cb.distance_to_calibration(y, p, range(4))


def test_bad_ids_are_refused():
    for ids, message in (
        (["a"], "same length"),
        ([["a", "b"]], "one-dimensional"),
        ([1.0, np.nan], "missing"),
        (np.array(["a", 1], dtype=object), "comparable"),
        (["a", "a"], "the same for all records of one id"),
    ):
        with pytest.raises(cb.CalibrantError, match=message):
            cb.distance_to_calibration([0, 1], [0.2, 0.8], ids)


def test_records_of_equal_weight_are_exact_far_beyond_brute_force():
    rng = np.random.default_rng(0)
    v = rng.random(60)
    y = (rng.random(60) < v**1.6).astype(int)
    found = certify(cb.Forecasts(y, v))
    assert found.exact
    quick = certify(cb.Forecasts(y, v), time_limit=0)
    assert quick.lower <= found.value <= quick.value
    over_points = cb.certified_distance(y, np.round(v, 1), np.arange(60))
    assert over_points.exact
    assert cb.lower_distance(y, np.round(v, 1)) - 1e-6 <= over_points.value
    assert over_points.value <= cb.upper_distance(y, np.round(v, 1)) + 1e-12


def test_many_weighted_levels_have_a_proven_gap():
    rng = np.random.default_rng(1)
    v, w = rng.random(20), rng.random(20)
    f = cb.Forecasts(rng.random(20), v, sample_weight=w)
    found, quick = certify(f), certify(f, time_limit=0)
    assert quick.lower < found.lower <= found.upper <= quick.upper
    assert found.upper - found.lower <= 0.011 * found.upper
    assert cb.distances(f)["upper-distance"].lower == found.lower


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_the_true_distance_takes_a_power(alpha):
    y, v = [0, 1, 1, 0, 1], [0.2, 0.4, 0.4, 0.7, 0.9]
    points = cb.distance_to_calibration(y, v, np.arange(5), alpha=alpha)
    w = np.full(5, 0.2)
    assert points == pytest.approx(best_grouping(LevelMasses(np.array(v), w, w * y), alpha)[0])
    assert points <= cb.upper_distance(y, v, alpha=alpha) + 1e-12


@pytest.mark.parametrize(
    "options", [{"alpha": 0.5}, {"alpha": np.inf}, {"time_limit": -1}, {"time_limit": "x"}]
)
def test_options_are_checked(options):
    with pytest.raises(cb.InvalidInputError):
        cb.upper_distance([0, 1], [0.2, 0.4], **options)
    with pytest.raises(cb.InvalidInputError):
        cb.certified_distance([0, 1], [0.2, 0.4], [1, 2], **options)
