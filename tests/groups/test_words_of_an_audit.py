"""What an audit says to people: how little it could see, how many events are missing, and no chance gaps."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb


def drawn(shift):
    """Return outcomes, predictions and groups of which "b" is off by `shift` and "c" is tiny."""
    rng = np.random.default_rng(5)
    p = rng.uniform(0.3, 0.7, 3000)
    group = np.array(["a"] * 2000 + ["b"] * 995 + ["c"] * 5)
    y = (rng.random(3000) < p + np.where(group == "b", shift, 0.0)).astype(float)
    return y, p, group


def test_nothing_found_says_what_stays_open():
    y, p, group = drawn(0.0)
    found = cb.audit(y, p, groups={"g": group}, seed=1)
    smallest = min(found.groups, key=lambda one: one.size)
    wide = 100 * (smallest.limits[1] - smallest.limits[0])
    assert (
        "smallest group tested has 995 rows, and the widest 95% interval (g = b, 995 rows) "
        f"spans {wide:.1f} points" in found.verdict
    )
    assert found.verdict.endswith("1 group was too small to be tested.")
    at = found.sheet().columns.index("finding")
    assert {line[at].text for line in found.sheet().lines} == {"within chance"}


def test_a_finding_counts_the_events():
    y, p, group = drawn(-0.15)
    found = cb.audit(y, p, groups={"g": group}, seed=1)
    inside = group == "b"
    fewer = round(p[inside].sum() - y[inside].sum())
    assert f"(995 records). That is about {fewer} fewer events than predicted." in found.verdict
    weighted = cb.audit(y, p, groups={"g": group}, sample_weight=1 + p, seed=1)
    assert weighted.verdict.endswith("(995 records).")


def test_the_largest_difference_is_named_among_groups_proven_wrong():
    rng = np.random.default_rng(5)
    group = np.repeat(["large", "small", "right"], [20_000, 400, 2_000])
    p = rng.uniform(0.3, 0.7, len(group))
    shift = np.select([group == "large", group == "small"], [0.06, -0.2], 0.0)
    y = (rng.random(len(group)) < p + shift).astype(float)
    said = cb.audit(y, p, groups={"g": group}, seed=1).verdict
    assert "Wrong beyond chance for 2 of 3 groups" in said
    assert "Worst for small (g): " in said
    whole = cb.evaluate(y, p, groups={"g": group}, seed=1, draws=99, confidence=0).verdict.sentence
    assert "Worst for small (g): " in whole
    few = group != "large"
    one = cb.audit(y[few], p[few], groups={"g": group[few]}, seed=1).verdict
    assert "Worst for small (g): " in one


@pytest.mark.parametrize(
    ("statistic", "mean"), [("kuiper", np.sqrt(8 / np.pi)), ("mean", np.sqrt(2 / np.pi))]
)
def test_z_of_calibrated_groups_is_what_the_page_says(statistic, mean):
    rng = np.random.default_rng(8)
    p = rng.uniform(0.2, 0.8, 40_000)
    y = (rng.random(40_000) < p).astype(float)
    found = cb.audit(y, p, groups={"g": np.arange(40_000) % 100}, statistic=statistic, draws=0, seed=1)
    average = np.mean([one.z for one in found.groups if one is not found.everyone])
    assert abs(average - mean) < 0.25


def test_everyone_has_one_interval_in_an_evaluation():
    y, p, group = drawn(0.0)
    found = cb.evaluate(y, p, groups={"g": group}, seed=1, draws=99)
    assert found.audit.everyone.interval == (found["in-the-large"].low, found["in-the-large"].high)


def test_intervals_of_groups_stay_within_what_rates_can_reach():
    rng = np.random.default_rng(6)
    p = rng.choice([0.02, 0.3, 0.95], 400)
    y = (rng.random(400) < p).astype(float)
    found = cb.audit(y, p, groups={"g": rng.integers(0, 12, 400), "p": p}, draws=0, min_size=1, seed=1)
    for one in found.groups:
        low, high = one.limits
        assert low <= one.difference <= high
        assert low >= -one.mean_prediction - 1e-12
        assert high <= 1 - one.mean_prediction + 1e-12


@pytest.mark.parametrize(("statistic", "measured"), [("kuiper", "Kuiper"), ("mean", "mean residual")])
def test_a_group_by_itself_names_its_statistic_and_a_bound(statistic, measured):
    y, p, group = drawn(-0.15)
    found = cb.audit(y, p, groups={"g": group}, statistic=statistic, seed=1)
    said = str(found.worst)
    assert f"g = b: 995 rows, {measured}" in said
    assert "p ≤ 0.005 with 199 draws" in said
    written = found.to_dict()
    assert written["pvalue_is_bound"]
    assert written["groups"][0]["pvalue_is_bound"]
    assert "p = " not in str(cb.audit(y, p, groups={"g": group}, draws=0, seed=1).worst)


def test_findings_of_a_search_say_where_p_is_a_bound():
    y, p, group = drawn(-0.15)
    found = cb.search_groups(y, p, {"g": group}, seed=1)
    assert found.worst.group.pvalue_is_bound
    assert f"p ≤ {1 / (1 + found.draws):.3f} with {found.draws} draws" in str(found)
