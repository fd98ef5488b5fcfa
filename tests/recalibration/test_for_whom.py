"""For whom: audits of held-out records before and after, and the group that loses most, with its limits."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import load_recalibration, recalibrate
from calibrant.recalibration.assess_groups import for_whom, group_gains, value_groups
from calibrant.recalibration.result import RecalibrationWarning


def test_a_repair_lowers_m_and_the_assessment_says_so(tmp_path):
    rng = np.random.default_rng(0)
    g, p = rng.choice(["a", "b", "c"], 3000), rng.beta(2, 3, 3000)
    y = rng.random(3000) < expit(logit(p) + np.where(g == "b", 1.2, 0.0))
    made = recalibrate(y, p, method="hierarchical", covariates={"g": g}, seed=1)
    whom = made.assessment.for_whom
    assert whom.before.pvalue <= 0.05
    assert whom.after.ratio < whom.before.ratio / 2
    assert "g = b" in whom.before.worst[0]
    assert whom.groups == 3
    assert whom.least.lower < whom.least.gain < whom.least.upper
    assert "before" in str(whom)
    made.save(tmp_path / "map.json")
    again = load_recalibration(tmp_path / "map.json")
    assert again.assessment.for_whom == whom
    assert json.loads((tmp_path / "map.json").read_text())["assessment"]["for_whom"]["groups"] == 3


def test_the_group_that_loses_most_is_named_with_its_interval():
    rng = np.random.default_rng(1)
    g, p = rng.choice(list("abcd"), 3000), rng.beta(2, 2, 3000)
    y = (rng.random(3000) < p).astype(float)
    worse = np.where(g == "c", expit(logit(p) + 1.0), p)  # a "repair" that harms c alone
    found = for_whom(y, p, worse, np.ones(3000), {"g": g}, seed=0)
    assert found.least.rule == "g = c"
    assert found.least.upper < 0
    assert found.least.size == np.sum(g == "c")
    gain = np.mean(
        (np.log(worse) * y + np.log1p(-worse) * (1 - y) - np.log(p) * y - np.log1p(-p) * (1 - y))[g == "c"]
    )
    assert found.least.gain == pytest.approx(gain)
    assert "g = c loses most" in str(found)
    assert "still wrong for some" in str(found)


def test_limits_hold_for_all_groups_at_once():
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        g, p = rng.integers(0, 6, 1500).astype(str), rng.beta(2, 2, 1500)
        y = (rng.random(1500) < p).astype(float)
        other = expit(logit(p) + rng.choice([-0.2, 0.2], 1500))
        gain = y * np.log(other / p) + (1 - y) * np.log((1 - other) / (1 - p))
        truth = p * np.log(other / p) + (1 - p) * np.log((1 - other) / (1 - p))
        found = group_gains(gain, np.ones(1500), value_groups({"g": g}, 100), 100)
        means = [truth[g == one.rule.removeprefix("g = ")].mean() for one in found]
        limits = zip(found, means, strict=True)
        missed += any(not one.lower <= mean <= one.upper for one, mean in limits)
    assert missed <= 20  # 10 expected; three deviations above


def test_without_covariates_there_is_nobody_to_name():
    rng = np.random.default_rng(2)
    p = rng.beta(2, 3, 300)
    made = recalibrate(rng.random(300) < p, p, method="platt", seed=0)
    assert made.assessment.for_whom is None


def test_row_order_changes_nothing():
    rng = np.random.default_rng(3)
    g, p = rng.choice(list("ab"), 600), np.round(rng.beta(2, 3, 600), 2)
    y = rng.random(600) < p
    order = rng.permutation(600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        one = recalibrate(y, p, method="hierarchical", covariates={"g": g}, seed=1).assessment.for_whom
        shuffled = {"g": g[order]}
        two = recalibrate(
            y[order], p[order], method="hierarchical", covariates=shuffled, seed=1
        ).assessment.for_whom
    assert one.least.gain == pytest.approx(two.least.gain, abs=1e-12)
    assert one.after.pvalue == two.after.pvalue
