"""Every group before and after a repair: the figures, who pays, and what is noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.recalibration.assess_groups import (
    GroupAssessment,
    GroupChange,
    audited_members,
    change_table,
    for_whom,
    group_changes,
    groups_worse_off,
    score_sheet,
)


def rows(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    g, h, p = rng.choice(list("abc"), n), rng.choice(["f", "m"], n), rng.beta(2, 3, n)
    y = (rng.random(n) < expit(logit(p) + np.where(g == "b", 1.0, 0.0))).astype(int)
    return pd.DataFrame({"y": y, "p": p, "q": expit(logit(p) + 0.5), "g": g, "h": h, "w": 1.0})


def judged(frame, **options):
    columns = {name: frame[name].to_numpy() for name in ("g", "h")}
    arrays = (frame[name].to_numpy(dtype=float) for name in ("y", "p", "q", "w"))
    return for_whom(*arrays, columns, **{"groups": ("g", "h"), "seed": 1} | options)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_value_and_pair_is_listed_with_what_plain_sums_give(weighted):
    frame = rows()
    if weighted:
        frame["w"] = np.random.default_rng(5).uniform(0.2, 3.0, len(frame))
    found = {one.rule: one for one in judged(frame).changes}
    assert len(found) == 1 + 3 + 2 + 6
    for rule, one in found.items():
        part = frame
        for condition in rule.split(" and ") if rule != "everyone" else []:
            column, value = condition.split(" = ")
            part = part[part[column] == value]
        mean = {name: np.average(part[name], weights=part["w"]) for name in ("y", "p", "q")}
        brier = {name: np.average((part["y"] - part[name]) ** 2, weights=part["w"]) for name in ("p", "q")}
        assert one.size == len(part)
        assert one.happened == pytest.approx(mean["y"])
        for side, name in ((one.before, "p"), (one.after, "q")):
            assert side.predicted == pytest.approx(mean[name])
            assert side.difference == pytest.approx(mean["y"] - mean[name])
            assert side.brier == pytest.approx(brier[name])
            assert side.low <= side.difference <= side.high
        moved = abs(one.after.difference) - abs(one.before.difference)
        assert one.farther.value == pytest.approx(moved)
        assert one.brier.value == pytest.approx(brier["q"] - brier["p"])
        assert one.farther.lower <= one.farther.value <= one.farther.upper


def test_before_and_after_are_the_audits_of_the_same_rows():
    frame = rows()
    found = judged(frame)
    for side, name in ((found.before, "p"), (found.after, "q")):
        direct = cb.audit(frame["y"], frame[name], groups=frame[["g", "h"]], seed=1)
        assert (side.metric, side.pvalue, side.draws) == (direct.metric, direct.pvalue, direct.draws)
        groups = {str(group.rule): group for group in direct.groups}
        for one in found.changes:
            row = one.before if name == "p" else one.after
            assert (row.pvalue, (row.low, row.high)) == (groups[one.rule].pvalue, groups[one.rule].limits)
    assert found.audited == "the values of g, h, alone and in pairs: 11 groups and everyone"


def test_those_for_whom_it_gets_worse_are_counted_and_the_worst_is_named():
    frame = rows()
    frame["q"] = np.where(frame["g"] == "a", expit(logit(frame["p"]) + 1.0), frame["p"])  # harms a alone
    found = judged(frame)
    worse = {one.rule for one in found.changes if one.farther.value > 0 and not one.farther.within_noise}
    assert worse >= {"g = a", "g = a and h = f", "g = a and h = m"}
    in_points, by_brier, by_log_loss, by_audit = found.who_pays
    assert in_points.startswith("in points: for 3 of 11 groups the mean prediction is farther")
    assert "g = a" in in_points
    assert "points too high after: farther by " in in_points
    assert in_points.endswith("), beyond chance")
    assert "still wrong for some (" in found.finding
    assert "of 11 groups at the 5% level)" in found.finding
    assert found.finding.endswith("observed")
    assert by_brier.startswith("by Brier score: 5 of 11 groups are worse off, beyond chance for")
    assert by_log_loss.startswith("by log loss: of 11 groups, g = a and h = m loses most")
    assert by_audit.startswith("by the audit: 3 of 11 groups are wrong at the 5% level after the repair")
    assert "and not before: the smallest p-value has g = a" in by_audit
    assert by_audit.endswith(" after (p < 0.001)")
    assert "who pays, in points" in str(found)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (1.0, 1.0, "after the repair the audit still rejects, the predictions are still wrong for some ("),
        (1.0, 0.0, "after the repair the audit no longer rejects: no evidence is left"),
        (0.0, 1.0, "after the repair the audit rejects, which it did not before: the predictions are wrong"),
        (0.0, 0.0, "the audit rejects neither before nor after the repair: nothing suggests that"),
    ],
)
def test_the_finding_knows_what_the_audit_said_before(before, after, said):
    frame = rows()
    p = frame["p"].copy()
    frame["y"] = (np.random.default_rng(3).random(len(p)) < p).astype(int)
    for side, shift in (("p", before), ("q", after)):
        frame[side] = np.where(frame["g"] == "a", expit(logit(p) + shift), p)
    assert judged(frame).finding.startswith(said)


def test_only_a_group_that_was_right_before_is_newly_wrong():
    frame = rows()
    frame["q"] = frame["p"]
    assert not any(one.startswith("by the audit") for one in judged(frame).who_pays)  # b is wrong as before
    inside = (frame["g"] == "c") & (frame["h"] == "f")
    frame["q"] = np.where(inside, expit(logit(frame["p"]) + 1.2), frame["p"])
    found = judged(frame)
    wrong = {one.rule for one in found.changes if one.after.wrong and not one.before.wrong} - {"everyone"}
    assert "g = c and h = f" in wrong
    assert f"by the audit: {len(wrong)} of 11 groups" in found.who_pays[-1]


def test_small_groups_are_listed_and_not_judged():
    frame = rows(3_000)
    frame.loc[:29, "h"] = "x"
    found = judged(frame)
    small = [one for one in found.changes if not one.judged]
    assert {one.rule for one in small} >= {"h = x"}
    assert all(one.effect == one.brier_effect == "open" for one in small)
    assert f"{len(small)} more have too few records" in found.who_pays[0]


def test_noise_is_called_a_harm_in_few_of_many_repairs_that_do_nothing_for_the_mean():
    called = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = 1_200
        g, p = rng.choice(list("abcd"), n), rng.beta(2, 3, n)
        q = expit(logit(p) + rng.normal(0.0, 0.2))
        y = (rng.random(n) < (p + q) / 2).astype(float)  # neither is nearer
        audits = tuple(cb.audit(y, side, groups={"g": g}, draws=0, seed=0) for side in (p, q))
        members = audited_members(audits[0], {"g": g})
        found = group_changes(y, (p, q), np.ones(n), audits, members, 100)
        called += any(not one.farther.within_noise for one in found)
    assert called <= 6  # two expected; about three deviations above


def test_covariates_are_listed_by_audited_group_and_by_value_alone_and_in_pairs():
    rng, frame = np.random.default_rng(3), rows(2_000)
    frame["h"] = rng.normal(size=len(frame)).round(1)
    frame["y"] = (rng.random(len(frame)) < frame["p"]).astype(int)  # few groups are wrong, which is fast
    frame["q"] = expit(logit(frame["p"]) + 0.05)
    found = judged(frame, groups=())
    assert found.audited.startswith("random splits of g, h: ")
    listed = [one.rule for one in found.changes]
    assert "everyone" in listed
    assert len(listed) == len(set(listed))
    assert {"g = a", "g = b", "g = c"} <= set(listed)
    assert any(rule.startswith("g = a and ") for rule in listed)
    tested = [one for one in found.changes if one.before.pvalue is not None]
    assert len(tested) > 50  # every group that the audit searched
    columns = frame[["g", "h"]]
    options = {"subpopulations": 300, "min_size": 100, "draws": 0, "seed": 1}
    searched = cb.audit(frame["y"], frame["p"], covariates=columns, **options).groups
    members = {str(one.rule): one.rule.members(columns) for one in searched}
    for one in tested[:20]:
        inside = members[one.rule]
        assert (one.size, one.happened) == (inside.sum(), pytest.approx(frame["y"][inside].mean()))


def test_a_repair_that_harms_only_pairs_of_values_is_reported():
    rng = np.random.default_rng(0)
    n = 3_000
    a, b, x = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.normal(0, 1, n)
    y = (rng.random(n) < expit(x + 0.8 * (a != b))).astype(float)
    covariates = {"a": np.array(["n", "y"])[a], "b": np.array(["n", "y"])[b]}
    found = for_whom(y, expit(x), expit(x + 0.4), np.ones(n), covariates, seed=0)
    worse = {one.rule for one in found.changes if one.farther.value > 0}
    assert worse == {"a = n and b = n", "a = y and b = y"}
    assert "for 2 of 8 groups" in found.who_pays[0]


def test_stored_and_shown():
    found = judged(rows())
    assert GroupAssessment.from_dict(found.to_dict()) == found
    old = {k: v for k, v in found.to_dict().items() if k not in ("changes", "audited")}  # of older files
    assert GroupAssessment.from_dict(old).changes == ()
    sheet = change_table(found.changes)
    assert len(sheet.lines) == 12
    line = dict(zip(sheet.columns, (cell.text for cell in sheet.lines[0]), strict=True))
    first = found.changes[0]
    points = [
        f"{100 * x.difference:+.1f} ({100 * x.low:.1f} to {100 * x.high:.1f})"
        for x in (first.before, first.after)
    ]
    assert line["difference before → after"] == " → ".join(points)
    assert (line["group"], line["change"]) == ("g = b", "better")
    assert first.before.difference > first.after.difference > 0  # still too low, by less
    scores = score_sheet(found.changes)
    line = dict(zip(scores.columns, (cell.text for cell in scores.lines[0]), strict=True))
    assert (line["p before"], line["Brier change"]) == ("≤ 0.005", "better")


def test_nobody_to_judge_says_nothing():
    assert groups_worse_off([]) == []
    one = judged(rows(60)).changes[0]
    assert isinstance(one, GroupChange)


def test_groups_without_an_interval_are_saved_and_read_back(tmp_path):
    """Weighted groups that no table shows have no interval, which JSON has no number for."""
    rng = np.random.default_rng(3)
    p = np.round(rng.beta(1.2, 2, 400), 3)
    y = (rng.random(400) < 0.85 * p**1.4 + 0.05).astype(int)
    columns = {"age": rng.normal(40, 12, 400).round(), "city": rng.choice(["a", "b", "c"], 400)}
    fitted = cb.recalibrate(
        y, p, covariates=columns, method="hierarchical", sample_weight=rng.random(400) + 0.1
    )
    fitted.assess()
    assert any(np.isnan(one.after.low) for one in fitted.assessment.for_whom.changes)
    fitted.save(tmp_path / "map.json")
    again = cb.load_recalibration(tmp_path / "map.json")
    assert str(again.assessment.for_whom) == str(fitted.assessment.for_whom)
