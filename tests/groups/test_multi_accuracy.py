"""audit(statistic="mean"): mean residuals of groups, judged against complete enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.multicalibration import step_down
from people import people, planted

from calibrant import audit, search_groups
from calibrant.errors import CalibrantError
from calibrant.groups.family import FamilyNull, RandomWords
from calibrant.groups.family import TestFamily as Family
from calibrant.groups.statistics import Variant
from calibrant.groups.subpopulations import Lists, everyone
from calibrant.records import Records, check_records


def mean_z(y: np.ndarray, p: np.ndarray, w: np.ndarray, mask: np.ndarray) -> float:
    """|sum w (y - p)| over its deviation if calibrated, by the definition."""
    total = abs(math.fsum((w * (y - p))[mask]))
    deviation = math.sqrt(math.fsum((w * w * p * (1 - p))[mask]))
    return total / deviation if total > 1e-12 else 0.0


def test_pvalues_equal_complete_enumeration_when_every_outcome_is_dealt_once():
    rng = np.random.default_rng(0)
    masks = [np.ones(6, bool), np.arange(6) < 3, np.arange(6) % 2 == 0, np.arange(6) > 3]
    every = np.array(list(itertools.product((0, 1), repeat=6)), float)  # 64 outcomes, equally likely at 1/2
    for _ in range(20):
        w = rng.choice([1.0, 0.5, 0.25, 1e-3], 6)
        w[0] = 1.0
        y, p = rng.integers(0, 2, 6), np.full(6, 0.5)
        checked = check_records(y, p, w, kind="labels")
        records = Records.of(checked)
        kind = Variant(statistic="mean")
        null = FamilyNull(records, kind, 64, RandomWords(rng))
        null.bits[:, 0] = [sum(int(bit) << t for t, bit in enumerate(every[:, i])) for i in records.rows]
        family = Family(records, kind.terms(records.prediction, records.outcome, records.weight), null, 1)
        family.take(everyone(6), 1)
        lists = [np.flatnonzero(mask[records.rows]).astype(np.int32) for mask in masks[1:]]
        family.take(Lists.of(["a", "b", "c"], lists), 3)
        expected = step_down(
            np.array([mean_z(y, p, w, mask) for mask in masks]) * (1 - 1e-10),
            np.array([[mean_z(outcome, p, w, mask) for outcome in every] for mask in masks]),
        )
        found = {group.rule: group.pvalue for group in family.ranked()}
        assert [found[name] for name in ("everyone", "a", "b", "c")] == pytest.approx(expected, abs=1e-12)


def test_simulated_pvalues_approach_complete_enumeration():
    rng = np.random.default_rng(1)
    p = np.array([0.1, 0.2, 0.3, 0.3, 0.6, 0.8, 0.9, 0.95])
    masks = {"low": p < 0.5, "odd": np.arange(8) % 2 == 1}
    every = [np.ones(8, bool), *masks.values()]
    w = np.ones(8)
    for _ in range(6):
        y = (rng.random(8) < 0.5).astype(int)
        worst = max(mean_z(y, p, w, mask) for mask in every)
        exact = sum(
            float(np.prod(np.where(np.array(outcome) == 1, p, 1 - p)))
            for outcome in itertools.product((0, 1), repeat=8)
            if max(mean_z(np.array(outcome), p, w, mask) for mask in every) >= worst * (1 - 1e-10)
        )
        found = audit(y, p, groups=masks, statistic="mean", draws=20_000, min_size=1, seed=3)
        assert found.ratio == pytest.approx(worst)
        assert abs(found.pvalue - exact) < 5 * math.sqrt(max(exact * (1 - exact), 0.0) / 20_000) + 1e-4


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 9]), st.booleans())
def test_multi_calibration_implies_multi_accuracy(seed, digits, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p, y = np.round(rng.random(n), digits), rng.integers(0, 2, n)
    w = 10.0 ** rng.integers(-5, 5, n) if weighted else None
    groups = {"c": rng.integers(0, 4, n), "d": rng.integers(0, 2, n)}
    mean = audit(y, p, groups=groups, sample_weight=w, statistic="mean", min_size=1, draws=0)
    range_ = audit(y, p, groups=groups, sample_weight=w, min_size=1, draws=0)
    assert {group.rule: group.kuiper for group in mean.groups} == {g.rule: g.kuiper for g in range_.groups}
    for group in mean.groups:
        assert abs(group.gap) <= group.kuiper + 1e-12
        assert group.gap == pytest.approx(group.mean_outcome - group.mean_prediction, abs=1e-12)
        assert not math.isnan(group.z)
    assert mean.ablated == max(abs(group.gap) for group in mean.groups)
    assert abs(mean.ablated_group.gap) == mean.ablated
    assert range_.ablated_group.kuiper == range_.ablated


def test_a_planted_mean_shift_is_named_with_its_size():
    y, p, frame, bad = planted(0)
    found = audit(y, p, groups=frame[["sex", "region"]], statistic="mean", seed=0)
    assert found.worst.rule == "sex = F and region = R7"
    assert found.worst.gap == pytest.approx((y - p)[bad].mean())
    assert (found.worst.pvalue or 1) <= 0.05
    assert f"too low by {found.worst.gap:.3g} on average" in str(found)
    assert "Multi-accuracy audit of" in str(found)


def test_errors_that_cancel_are_seen_by_kuiper_only():
    rng = np.random.default_rng(4)
    p = rng.random(4000)
    y = rng.random(4000) < np.where(p < 0.5, p + 0.1, p - 0.1)
    groups = {"half": rng.random(4000) < 0.5}
    assert (audit(y, p, groups=groups, seed=1).pvalue or 1) <= 0.01
    assert (audit(y, p, groups=groups, statistic="mean", seed=1).pvalue or 0) > 0.05


@pytest.mark.parametrize("statistic", ["kuiper", "mean"])
def test_expected_is_the_null_mean(statistic):
    y, p, frame = people(5, 3000)
    groups = frame[["region"]]
    drawn = audit(y, p, groups=groups, statistic=statistic, draws=999, seed=1)
    limit = audit(y, p, groups=groups, statistic=statistic, draws=0)
    for one in drawn.groups:
        other = next(group for group in limit.groups if group.rule == one.rule)
        assert one.expected == pytest.approx(other.expected, rel=0.12)
    factor = math.sqrt((8 if statistic == "kuiper" else 2) / math.pi)
    assert limit.everyone.expected == pytest.approx(factor * limit.everyone.sigma)


@pytest.mark.parametrize("variant", ["plain", "proportional", "low-prevalence", "real"])
def test_the_mean_keeps_its_level_in_every_variant(variant):
    alarms = 0
    for seed in range(20):
        y, p, frame = people(300 + seed, 300)
        options = {"variant": variant, "statistic": "mean", "draws": 39, "seed": seed}
        alarms += (audit(y, p, groups=frame[["sex", "region"]], **options).pvalue or 1) <= 0.05
    assert alarms <= 5


def test_the_search_takes_statistic_and_variant():
    y, p, frame, _ = planted(2)
    mean = search_groups(y, p, frame, seed=2, statistic="mean", draws=99)
    assert {"sex = F", "region = R7"} <= set(mean.worst.rule.split(" and "))
    assert mean.to_dict()["statistic"] == "mean"
    assert "too low by" in str(mean)
    shifted = search_groups(y, p, frame, seed=2, variant="proportional", rho=0.05, draws=99)
    assert shifted.variant == "proportional"
    assert shifted.worst.group.z > 3
    with pytest.raises(CalibrantError, match="did you mean 'mean'"):
        search_groups(y, p, frame, statistic="mena")
