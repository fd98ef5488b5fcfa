"""The directed search: it finds what was planted, and the half that did not search keeps it honest."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from people import planted
from scipy.stats import skew

from calibrant import search_groups
from calibrant.clusters import Clusters
from calibrant.errors import CalibrantError
from calibrant.groups.family import FamilyNull, RandomWords
from calibrant.groups.statistics import Variant
from calibrant.records import Records, check_records


@pytest.mark.parametrize(
    ("seeds", "enough"), [(range(2), 2), pytest.param(range(2, 10), 7, marks=pytest.mark.slow)]
)
def test_a_planted_group_of_two_percent_is_found_named_and_confirmed(seeds, enough):
    hits = 0
    for seed in seeds:
        y, p, frame, _ = planted(seed)
        worst = search_groups(y, p, frame, seed=seed).worst
        hits += {"sex = F", "region = R7"} <= set(worst.rule.split(" and ")) and worst.group.pvalue <= 0.05
    assert hits >= enough


def test_calibrated_data_is_seldom_accused():
    accused = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = np.round(rng.random(1500), seed % 3 + 1)
        y = rng.random(1500) < p
        columns = {"a": rng.integers(0, 5, 1500), "b": rng.choice(list("xyz"), 1500), "c": rng.random(1500)}
        accused += bool(search_groups(y, p, columns, seed=seed, draws=99).confirmed)
    assert accused <= 4


def test_rules_mean_the_members_that_were_tested():
    y, p, frame, _ = planted(3)
    found = search_groups(y, p, frame[["sex", "region"]], seed=3, depth=2)
    for one in found.findings:
        conditions = dict(part.split(" = ") for part in one.rule.split(" and "))
        size = np.logical_and.reduce([frame[name] == value for name, value in conditions.items()]).sum()
        assert abs(one.group.size - size / 2) < 5 * np.sqrt(size)
    assert found.searched + found.confirming == len(y)
    assert found.findings[0].group.z == max(one.group.z for one in found.findings)
    assert json.loads(json.dumps(found.to_dict()))["examined"] == found.examined > 50


def test_rules_that_were_taken_to_the_other_half_and_not_tested_are_counted():
    rng = np.random.default_rng(0)
    p = rng.random(150)
    y, gaps = rng.random(150) < p, np.where(np.arange(150) < 2, np.nan, p)
    columns = {"a": rng.random(150), "b": rng.integers(0, 3, 150), "c": rng.random(150)}
    found = search_groups(y, gaps, columns, seed=6, draws=19, missing="drop")
    left = found.not_tested
    assert left.too_small > 0
    assert found.taken == 10 == len(found.findings) + left.too_small + left.duplicates
    assert "10 rules taken to 74 other rows (2 with missing values dropped)" in str(found)
    assert f"not tested there: {left.too_small} too small" in str(found)
    assert found.to_dict()["taken"] == 10
    assert found.to_dict()["not_tested"]["too_small"] == left.too_small
    assert found.to_dict()["dropped"] == 2


def test_row_order_does_not_matter():
    y, p, frame, _ = planted(4)
    p = np.round(p, 2)
    shuffled = np.random.default_rng(0).permutation(len(y))
    first = search_groups(y, p, frame, seed=1, depth=2, draws=19)
    again = search_groups(y[shuffled], p[shuffled], frame.iloc[shuffled], seed=1, depth=2, draws=19)
    assert first.to_dict() == again.to_dict()


def test_a_tiny_sample_is_refused():
    with pytest.raises(CalibrantError, match="a search needs at least 60 rows; got 3 rows"):
        search_groups([0, 1, 1], [0.1, 0.2, 0.3], {"a": [1, 2, 3]})


def test_real_responses_are_confirmed_by_random_signs():
    """Outcomes drawn from predictions beyond [0, 1] made every p-value 1."""
    found = alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, columns = rng.uniform(0, 3, 1000), {"a": rng.integers(0, 4, 1000), "b": rng.random(1000)}
        y = p + rng.normal(size=1000)
        options = {"variant": "real", "draws": 99, "seed": seed}
        right = search_groups(y, p, columns, **options)
        assert any(one.group.pvalue < 1 for one in right.findings)
        alarms += bool(right.confirmed)
        wrong = search_groups(np.where(columns["a"] == 1, y + 0.8, y), p, columns, **options)
        found += any("a" in one.rule for one in wrong.confirmed)
    assert found >= 18
    assert alarms <= 4  # 1 expected


def test_weights_of_any_size_have_the_same_skewness():
    y, p, columns = (
        [-0.5, 0.5, -0.5, 0.5],
        [0.3, 0.2, 0, -0.2],
        {"g": ["b", "a", "b", "a"], "z": [1.0, 2, 3, 4]},
    )
    weights = [1e-49, 1e-64, 1e-97, 1e90]
    found = search_groups(y, p, columns, draws=19, min_size=1, variant="real", sample_weight=weights)
    assert 0 < found.worst.group.pvalue <= 1
    rng = np.random.default_rng(5)
    records = Records.of(check_records(rng.exponential(1, 50) ** 3, np.ones(50), rng.random(50), kind="real"))
    tiny = replace(records, weight=records.weight * 2.0**-400)
    single = Clusters.of_single_records(50)

    def skewness(some: Records) -> float:
        return FamilyNull(some, Variant("real"), 1, RandomWords(rng), single).skewness

    assert skewness(tiny) == pytest.approx(skewness(records))
    residual = records.weight * (records.outcome - 1)
    assert skewness(records) == pytest.approx(float(skew(residual)))
