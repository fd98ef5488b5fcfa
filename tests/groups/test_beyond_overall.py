"""Groups that are wrong beyond the overall error, and audits and comparisons of clustered rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cb
from calibrant.groups.stratified import OverallCurve, StratifiedScores, compare_pair


def wrong_for_all(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 5, n)
    return (rng.random(n) < truth).astype(int), np.clip(1.3 * truth, 0, 1), rng


def test_a_column_that_plays_no_role_has_the_overall_error():
    alarms = 0
    for seed in range(1, 11):  # each of them wrong with probability 5%
        y, p, rng = wrong_for_all(seed=seed)
        found = cb.audit(y, p, groups={"idle": rng.integers(0, 4, len(y))}, draws=39)
        assert len(found.significant()) == 5
        alarms += len(found.beyond_overall()) > 0
    assert alarms <= 2
    assert "Wrong beyond chance for 4 of 4 groups, but none stands out" in found.verdict


def test_the_group_with_an_error_of_its_own_is_named_without_its_combinations():
    y, p, rng = wrong_for_all()
    p = p / 1.3
    columns = {"job": rng.choice(3, len(y), p=[0.45, 0.1, 0.45]), "idle": rng.integers(0, 3, len(y))}
    y = np.where((columns["job"] == 1) & (rng.random(len(y)) < 0.2), 1, y)
    found = cb.audit(y, p, groups=columns, draws=99)
    assert [group.name for group in found.beyond_overall()] == ["job = 1"]
    assert "job = 1" in found.verdict


def test_a_group_with_another_slope_and_the_same_mean_stands_out():
    rng = np.random.default_rng(3)
    p, group = rng.uniform(0.1, 0.9, 6000), rng.integers(0, 4, 6000)
    y = (rng.random(6000) < np.where(group == 2, 0.5 + 0.5 * (p - 0.5), p)).astype(int)
    found = cb.audit(y, p, groups={"g": group}, draws=99)
    assert [one.name for one in found.beyond_overall()] == ["g = 2"]
    table = {"y": y, "p": p, "g": group}
    sketch = cb.Sketch.from_frame(table, outcome="y", prediction="p", by=["g"])
    coarse = cb.audit(sketch, draws=99)
    assert [one.name for one in coarse.beyond_overall()] == ["g = 2"]
    assert coarse.beyond_overall()[0].beyond == pytest.approx(found.beyond_overall()[0].beyond, rel=3)


def test_a_sketch_compares_groups_at_equal_predictions():
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 20_000)
    y = (rng.random(20_000) < 0.5 + 0.6 * (p - 0.5)).astype(int)  # overconfident for everyone alike
    table = {"y": y, "p": p, "high": p + 0.2 * rng.normal(size=20_000) > 0.5}
    found = cb.audit(cb.Sketch.from_frame(table, outcome="y", prediction="p", by=["high"]), draws=99)
    assert len(found.significant()) == 3
    assert found.beyond_overall() == ()
    table["y"] = np.where(table["high"] & (rng.random(20_000) < 0.1), 1, y)
    found = cb.audit(cb.Sketch.from_frame(table, outcome="y", prediction="p", by=["high"]), draws=99)
    assert len(found.beyond_overall()) == 2


def test_responses_of_any_size_are_compared_with_the_others():
    rng = np.random.default_rng(5)
    p, group = rng.normal(50, 10, 3000), rng.integers(0, 3, 3000)
    y = p + rng.normal(0, 5, 3000) + np.where(group == 1, 3, 1)
    found = cb.audit(y, p, groups={"g": group}, variant="real", draws=99)
    assert found.beyond_overall()[0].name == "g = 1"
    assert "observed" in found.verdict
    assert "%" not in found.verdict.split("Worst for")[1]


def test_against_the_rest_is_the_comparison_of_two_groups():
    y, p, rng = wrong_for_all(800)
    order = np.argsort(p)
    y, p = y[order].astype(float), p[order]
    members = np.flatnonzero(rng.random(800) < 0.2)
    group = np.ones(800, dtype=np.intp)
    group[members] = 0
    pair = compare_pair(StratifiedScores.of(p, y, group, 2), 0.95)
    assert OverallCurve(p, y).level_pvalue(members) == pytest.approx(pair.pvalue, rel=1e-6)


def clustered(seed, clusters=40, size=8):
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(clusters), size)
    p = rng.uniform(0.2, 0.8, clusters * size)
    shared = rng.random(clusters)[label] < p  # the whole cluster shares its luck
    return shared.astype(int), p, label, rng


def test_clusters_calm_the_audit_and_the_comparison():
    alarms = np.zeros(4)
    for seed in range(12):
        y, p, label, rng = clustered(seed)
        region = rng.integers(0, 3, 40)[label]
        alarms[0] += cb.audit(y, p, groups={"r": region}, draws=99).pvalue <= 0.05
        alarms[1] += cb.audit(y, p, groups={"r": region}, draws=99, clusters=label).pvalue <= 0.05
        alarms[2] += cb.compare_groups(y, p, region, draws=99).pvalue <= 0.05
        found = cb.compare_groups(y, p, region, draws=99, clusters=label)
        alarms[3] += found.pvalue <= 0.05
    assert alarms[0] >= 6
    assert alarms[2] >= 4
    assert max(alarms[1], alarms[3]) <= 3
    assert "Rows are correlated within cluster" in str(found)


def test_clusters_of_one_row_change_nothing():
    y, p, _, rng = clustered(1)
    region = rng.integers(0, 3, len(y))
    alone = np.arange(len(y))
    plain = cb.audit(y, p, groups={"r": region}, draws=99)
    single = cb.audit(y, p, groups={"r": region}, draws=99, clusters=alone)
    assert single.to_dict() == plain.to_dict()
    one = cb.compare_groups(y, p, region, draws=99)
    assert cb.compare_groups(y, p, region, draws=99, clusters=alone).to_dict() == one.to_dict()


@pytest.mark.parametrize("ties", [False, True])
def test_neither_labels_of_clusters_nor_the_order_of_rows_matter(ties):
    y, p, label, rng = clustered(1)
    p = np.round(p, 1) if ties else p
    region = rng.integers(0, 3, len(y))
    named = np.array([f"hospital {number}" for number in rng.permutation(label.max() + 1)])[label]
    order = rng.permutation(len(y))
    first = cb.audit(y, p, groups={"r": region}, draws=99, clusters=label).columns
    assert cb.audit(y, p, groups={"r": region}, draws=99, clusters=named).columns == first
    moved = cb.audit(y[order], p[order], groups={"r": region[order]}, draws=99, clusters=named[order])
    assert moved.columns["pvalue"] == first["pvalue"]
    one = cb.compare_groups(y, p, region, draws=99, clusters=label)
    assert cb.compare_groups(y, p, region, draws=99, clusters=named).pvalue == one.pvalue
    again = cb.compare_groups(y[order], p[order], region[order], draws=99, clusters=named[order])
    assert again.pvalue == one.pvalue


@pytest.mark.parametrize("call", [cb.audit, cb.compare_groups])
def test_too_few_or_missing_clusters_are_refused(call):
    y, p, label, _ = clustered(2)
    groups = {"r": np.arange(len(y)) % 2}
    with pytest.raises(cb.CalibrantError, match="must amount to at least 10"):
        call(y, p, groups=groups, clusters=label // 8)
    with pytest.raises(cb.CalibrantError, match="clusters must not be missing"):
        call(y, p, groups=groups, clusters=[None, *label[1:].tolist()])


def test_the_null_is_named_and_checked():
    y, p, _, rng = clustered(3)
    groups = {"r": rng.integers(0, 2, len(y))}
    assert cb.audit(y, p, groups=groups, draws=19).null == "exact"
    assert cb.audit(y, p, groups=groups, draws=19, null="signs").null == "signs"
    with pytest.raises(cb.CalibrantError, match="null must be one of auto, exact, signs"):
        cb.audit(y, p, groups=groups, null="coins")


def test_what_is_expected_does_not_depend_on_draws():
    y, p, _, rng = clustered(4)
    groups = {"r": rng.integers(0, 2, len(y))}
    expected = [
        {group.name: group.expected for group in cb.audit(y, p, groups=groups, draws=draws).groups}
        for draws in (0, 99)
    ]
    assert expected[0] == expected[1]


@pytest.mark.slow
def test_skewed_real_responses_keep_their_level():
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.4, 600)
        y = rng.beta(0.4 * p, 0.4 * (1 - p))
        columns = {"a": rng.integers(0, 4, 600), "b": rng.integers(0, 20, 600)}
        alarms += cb.audit(y, p, groups=columns, variant="real", draws=99).pvalue <= 0.05
    assert alarms <= 21


def skewed(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Outcomes whose means are the predictions, and whose errors have a long tail above."""
    rng = np.random.default_rng([seed, n])
    if kind == "half-points":
        p = 0.05 + rng.uniform(-0.02, 0.02, n)
        y = 0.5 * (rng.random(n) < 2 * p)
    else:
        p = rng.uniform(0.5, 2, n)
        y = p * rng.lognormal(-0.5, 1, n)
    return y, p, {"g": rng.integers(0, 4, n)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lognormal", "half-points"])
@pytest.mark.parametrize("n", [200, 1000])
def test_long_tails_keep_their_level_or_are_too_little_data(kind, n):
    alarms = refused = 0
    for seed in range(400):
        y, p, groups = skewed(kind, n, seed)
        found = cb.audit(y, p, groups=groups, variant="real", draws=99, seed=seed)
        alarms += found.pvalue is not None and found.pvalue <= 0.05
        refused += found.pvalue is None
    assert alarms <= binom.ppf(0.999, 400 - refused, 0.05)
    assert refused == 0


@pytest.mark.slow
def test_a_group_that_is_wrong_is_found_despite_long_tails():
    found = 0
    for seed in range(60):
        y, p, groups = skewed("lognormal", 1000, seed)
        y = np.where(groups["g"] == 1, 1.5 * y, y)
        pvalue = cb.audit(y, p, groups=groups, variant="real", draws=99, seed=seed).pvalue
        found += pvalue is not None and pvalue <= 0.05
    assert found >= 42  # 51 without the allowance for skewness


@pytest.mark.parametrize("outcomes", ["one above", "none above"])
def test_too_few_records_above_their_predictions_are_too_little_data(outcomes):
    """Where no half-point came at all, every data set was called wrong: all residuals have one sign."""
    y, p, groups = skewed("half-points", 60, 1)
    y[:] = 0.0
    y[0] = 0.5 if outcomes == "one above" else 0.0
    found = cb.audit(y, p, groups=groups, variant="real")
    assert found.pvalue is None
    assert found.draws == 0
    count = int(outcomes == "one above")
    assert found.verdict == (
        "Too little data to say: records must include at least 5 with an outcome above its prediction; "
        f"got {count} of 60."
    )
    assert found.to_dict()["reason"] in found.verdict
    without = cb.audit(y, p, groups=groups, variant="real", draws=0)
    assert without.verdict.endswith("ranked by z; p-values need draws.")
